"""Gantline's own way: decide on events (or in rounds), finishes at their exact instant, no eviction in vain."""

from gantline.engine.regime import Regime

REGIME = Regime()
