"""Muri's simulator (SIGCOMM 2022): events, and at each of them seconds that every job which goes on running loses."""

from gantline.engine.regime import Regime

REGIME = Regime(name="muri", profiles=True)
