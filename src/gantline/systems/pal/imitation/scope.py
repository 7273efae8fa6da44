"""What PAL's simulator reads: three orders without parameters, its placements, and the speeds of devices."""

from gantline.engine.imitations.registry import Scope

SCOPE = Scope(
    "PAL's simulator",
    frozenset({"round", "placement", "device_speeds", "locality"}),
    {"fifo": (), "las": (), "srtf": ()},
)
