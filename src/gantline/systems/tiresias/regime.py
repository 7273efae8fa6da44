"""Tiresias' simulator (NSDI 2019): events on whole seconds, finishes before arrivals, no cost for anything.

Its lists are sorted in place from event to event, so equal ranks keep the order they had.
"""

from gantline.engine.regime import Regime

REGIME = Regime(name="tiresias", tick=1.0, ties_keep_order=True)
