"""Synergy's simulator (OSDI 2022): rounds in which every allocation is made afresh, and a finish is seen at the end of its round.

Its rules are in docs/policies/synergy.md.
"""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="synergy", round=300.0, finish_at_boundary=True, profiles=True)

# What Synergy's simulator reads: one policy with its order, mechanism and placement, rounds, and the profiles of networks.
SCOPE = Scope(
    "Synergy's simulator",
    frozenset({"round", "profiles"}),
    {"synergy": ("order", "mechanism", "place", "mode")},
)
