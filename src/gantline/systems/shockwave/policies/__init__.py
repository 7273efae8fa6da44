"""Shockwave (NSDI 2023): market-like fairness and efficiency over a window of rounds, for jobs whose speed changes by itself."""
