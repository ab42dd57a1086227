"""What a watch of paths decides: when it measures within its bytes a day, what is usual, what is an alert: pure."""
