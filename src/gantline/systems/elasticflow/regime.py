"""ElasticFlow's simulator (ASPLOS 2023): slots, a calendar of merged events, ends seen late, overhead by warm ranges of ranks.

Its rules are in docs/design/elasticflow.md; it has a loop of its own, which runs `elasticflow`,
`edf`, `tiresias`, `gandiva` and `themis`, and no others.
"""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="elasticflow")

# What ElasticFlow's simulator reads: spare GPUs are ElasticFlow's alone, and of the rigid baselines only Tiresias has something to set.
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
