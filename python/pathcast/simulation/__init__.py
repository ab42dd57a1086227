"""A scenario file in the simulator, once or over a grid of settings, with its traces and plots."""
