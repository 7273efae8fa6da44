"""Sia's simulator (SOSP 2023): every minute all jobs advance and then the scheduler is asked; jobs run by measured profiles."""

from gantline.engine.regime import Regime

REGIME = Regime(name="sia", round=60.0, profiles=True, sizes_bind=False)
