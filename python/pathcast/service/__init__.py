"""What looks after an installation as a whole."""
