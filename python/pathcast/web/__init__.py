"""The page of `pathcast web`: read only, from the history, the jobs, the lines and what runs now."""
