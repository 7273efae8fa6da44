"""CarbonScaler (SIGMETRICS 2024): jobs grow while the grid is clean."""
