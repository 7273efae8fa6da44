"""Shockwave (NSDI 2023): a market over a window of rounds."""
