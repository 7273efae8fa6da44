"""What Synergy's simulator reads: one policy with its order, mechanism and placement, rounds, and the profiles of networks."""

from gantline.engine.imitations.registry import Scope

SCOPE = Scope(
    "Synergy's simulator",
    frozenset({"round", "profiles"}),
    {"synergy": ("order", "mechanism", "place", "mode")},
)
