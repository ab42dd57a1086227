"""What runs beside a command and outlives it: daemons, the records of what was made, and keys."""
