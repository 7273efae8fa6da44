"""Pollux (OSDI 2021): goodput, with batch sizes that adapt."""
