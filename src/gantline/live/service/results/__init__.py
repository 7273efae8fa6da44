"""Finished simulations in a folder, for the dashboard: a list of them, one of them, and `gantline view`."""
