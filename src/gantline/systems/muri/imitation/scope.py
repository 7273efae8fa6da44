"""What Muri's simulator reads: its own policy with its ablations, five baselines without parameters, and what events cost."""

from gantline.engine.imitations.registry import Scope

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
