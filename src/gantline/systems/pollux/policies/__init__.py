"""Pollux (OSDI 2021): allocations by a population search over goodput."""
