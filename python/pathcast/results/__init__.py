"""What a run leaves: its directory, lines that a later run continues, the look of its plots and pages."""
