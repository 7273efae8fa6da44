"""Tiresias' simulator (NSDI 2019): events on whole seconds, finishes before arrivals, no cost for anything."""

from gantline.engine.regime import Regime

REGIME = Regime(name="tiresias", tick=1.0)
