"""CASSINI (NSDI 2024): jobs that share links take turns on them."""
