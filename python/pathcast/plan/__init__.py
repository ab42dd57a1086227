"""What to send when and over which lines: pure; forecasts, terms and the time come as arguments."""
