"""Gantline: one scheduler, two clocks."""
