"""GAIA (ASPLOS 2024): jobs that may wait are started, or run, while the grid is clean."""
