"""Gavel's simulator (OSDI 2020): rounds in which jobs do whole steps."""
