"""Gavel (OSDI 2020): shares of time on several device types, as linear programs."""
