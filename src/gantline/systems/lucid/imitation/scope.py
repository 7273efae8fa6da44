"""What Lucid's simulator reads: six policies, which of its slips are repaired, and its files of measurements and predictions."""

from gantline.engine.imitations.registry import Scope

SCOPE = Scope(
    "Lucid's simulator",
    frozenset({"profiles"}),
    {"fifo": (), "sjf": (), "qssf": (), "srtf": (), "tiresias": (), "lucid": ("repair",)},
)
