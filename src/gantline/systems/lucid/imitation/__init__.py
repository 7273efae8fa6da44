"""Lucid's simulator (ASPLOS 2023): virtual clusters of nodes with eight GPUs, one second at a time."""
