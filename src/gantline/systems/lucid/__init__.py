"""Lucid (ASPLOS 2023): small jobs share GPUs where measurements say that they hardly disturb each other."""
