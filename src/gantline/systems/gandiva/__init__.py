"""Gandiva (OSDI 2018): time slicing."""
