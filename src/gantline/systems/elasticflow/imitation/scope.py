"""What ElasticFlow's simulator reads: spare GPUs are ElasticFlow's alone, and of the rigid baselines only Tiresias has something to set."""

from gantline.engine.imitations.registry import Scope

_DEADLINES = ("compat", "admission", "judge", "scale_limit", "overhead")

SCOPE = Scope(
    "ElasticFlow's simulator",
    frozenset({"round", "track"}),
    {
        "elasticflow": (*_DEADLINES, "spare_order"),
        "edf": _DEADLINES,
        "tiresias": ("limits",),
        "gandiva": (),
        "themis": (),
    },
)
