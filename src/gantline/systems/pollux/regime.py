"""Pollux' simulator (OSDI 2021): every minute all jobs advance and then the policy is asked; jobs run by measured profiles."""

from gantline.engine.regime import Regime

REGIME = Regime(name="pollux", round=60.0, profiles=True)
