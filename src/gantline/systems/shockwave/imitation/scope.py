"""What Shockwave's simulator reads; its baselines are those of Gavel's family by name, and have nothing to set."""

from gantline.engine.imitations.registry import Scope

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
