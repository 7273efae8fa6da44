"""Blox (EuroSys 2024): rounds of 300 s; everything is seen at round boundaries.

A job that runs is credited whole rounds, finishes at the boundary at which its work is covered, and frees its devices there.
The order is strict: a job that does not fit stops everyone below it one after the other, and if it still does not fit the walk
ends and they stay stopped.
"""

from gantline.engine.regime import Regime

REGIME = Regime(
    name="blox",
    round=300.0,
    finish_at_boundary=True,
    keep_evictions=True,
    strict=True,
    settles=("preempt", "backfill"),
    credit_round=True,
)
