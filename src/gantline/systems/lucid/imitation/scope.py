"""What Lucid's simulator reads: six policies without parameters, and its files of measurements and predictions."""

from gantline.imitations.scope import Scope

SCOPE = Scope(
    "Lucid's simulator",
    frozenset({"profiles"}),
    {"fifo": (), "sjf": (), "qssf": (), "srtf": (), "tiresias": (), "lucid": ()},
)
