"""Policies of Lucid (ASPLOS 2023), and QSSF, one of its baselines."""
