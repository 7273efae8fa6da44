"""Shockwave's simulator (NSDI 2023): Gavel's rounds of 120 s on one device type, with jobs whose batch size changes in mid-run."""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="shockwave", round=120.0, track_end_included=False)

# What Shockwave's simulator reads; its baselines are those of Gavel's family by name, and have nothing to set.
SCOPE = Scope(
    "Shockwave's simulator",
    frozenset({"round", "until", "throughputs"}),
    {
        "shockwave": ("window", "makespan", "power", "largest", "beat", "futures", "calibrate", "compat"),
        "recorded": ("table",),
        "gavel.allox": (),
        "gavel.finish_time_fairness": (),
        "gavel.gandiva_fair": (),
        "gavel.max_min_fairness": (),
        "gavel.max_sum_throughput_perf": (),
        "gavel.min_total_duration": (),
    },
)
