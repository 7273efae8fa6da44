"""Muri's simulator (SIGCOMM 2022): events, and at each of them seconds that every job which goes on running loses."""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="muri", profiles=True)

# What Muri's simulator reads: its own policy with its ablations, five baselines without parameters, and what events cost.
SCOPE = Scope(
    "Muri's simulator",
    frozenset({"profiles", "until"}),
    {
        "antman": (),
        "muri": ("known", "matching", "ordering", "most"),
        "srsf": (),
        "srtf": (),
        "themis": (),
        "tiresias": (),
    },
)
