"""What Sia's simulator reads: batches never change there under Shockwave, so nothing of its futures; Gavel's have nothing to set."""

from gantline.engine.imitations.registry import Scope

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
