"""Gavel's simulator (OSDI 2020): rounds of 360 s in which jobs do whole steps; a loop of its own counts them."""

from gantline.engine.regime import Regime

REGIME = Regime(name="gavel", round=360.0, track_end_included=False, checkpoints=True)
