"""The scheduler that chooses its scheduler: see `policy`."""
