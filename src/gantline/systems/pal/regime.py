"""PAL's simulator (SC 2024), a fork of Blox: rounds in which a gang's steps take as long as its slowest GPU and its spread make them.

Its rules are in docs/policies/pal.md. Suspended jobs lose no work, nothing costs time, a finish is seen at the end of its round.
"""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="pal", round=300.0, finish_at_boundary=True)

# What PAL's simulator reads: three orders without parameters, its placements, and the speeds of devices.
SCOPE = Scope(
    "PAL's simulator",
    frozenset({"round", "placement", "device_speeds", "locality"}),
    {"fifo": (), "las": (), "srtf": ()},
)
