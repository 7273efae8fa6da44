"""Pollux' simulator (OSDI 2021): every minute all jobs advance and then the policy is asked; jobs run by measured profiles."""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="pollux", round=60.0, profiles=True)

# What Pollux' simulator reads.
SCOPE = Scope(
    "Pollux' simulator",
    frozenset({"round", "profiles"}),
    {
        "optimus": ("interference",),
        "pollux": ("p", "restart", "avoid", "size", "generations", "fit", "interference"),
        "tiresias": ("limits", "interference"),
    },
)
