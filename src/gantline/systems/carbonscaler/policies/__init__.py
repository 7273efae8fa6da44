"""CarbonScaler (SIGMETRICS 2024): an elastic job grows while the grid is clean and shrinks while it is not."""
