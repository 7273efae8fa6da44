"""Sia's simulator (SOSP 2023): every minute all jobs advance and then the scheduler is asked; jobs run by measured profiles."""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="sia", round=60.0, profiles=True, sizes_bind=False)

# What Sia's simulator reads: batches never change there under Shockwave, so nothing of its futures; Gavel's have nothing to set.
SCOPE = Scope(
    "Sia's simulator",
    frozenset({"round", "until", "profiles"}),
    {
        "gavel.finish_time_fairness": (),
        "gavel.max_sum_throughput_perf": (),
        "pollux": ("p", "restart", "avoid", "size", "generations", "fit"),
        "recorded": ("table", "fit"),
        "shockwave": ("window", "makespan", "power", "largest", "beat"),
        "sia": ("p", "lambda_n", "restart", "projection", "share_limit", "batch_cap", "fit", "placement"),
    },
)
