"""Lucid's simulator (ASPLOS 2023): seconds, virtual clusters of nodes with eight GPUs, and a first run of each small job for its profile.

Its rules are in docs/policies/lucid.md.
"""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="lucid", tick=1.0, profiles=True)

# What Lucid's simulator reads: six policies, which of its slips are repaired, and its files of measurements and predictions.
SCOPE = Scope(
    "Lucid's simulator",
    frozenset({"profiles"}),
    {"fifo": (), "sjf": (), "qssf": (), "srtf": (), "tiresias": (), "lucid": ("repair",)},
)
