"""Shockwave's simulator (NSDI 2023): Gavel's rounds of 120 s on one device type, with jobs whose batch size changes in mid-run."""

from gantline.engine.regime import Regime

REGIME = Regime(name="shockwave", round=120.0, track_end_included=False)
