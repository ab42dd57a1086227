"""Runs, resumes, tabulates and plots experiments."""
