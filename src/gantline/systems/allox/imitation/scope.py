"""What IRFsim reads: whether jobs are profiled is the regime's choice, and weights of users count in its forms of DRF alone."""

from gantline.engine.imitations.registry import Scope

SCOPE = Scope(
    "IRFsim",
    frozenset({"track"}),
    {
        "allox": ("alpha",),
        "allox.plus": ("age",),
        "allox.sjf": (),
        "allox.srpt": (),
        "drf": ("weights",),
        "drf-ext": ("weights",),
        "drf-fifo": ("weights",),
        "es": (),
    },
    resources=("cpus", "memory"),
)
