"""What GAIA's simulator reads: one policy with the flags of its command line, and the carbon intensity."""

from gantline.engine.imitations.registry import Scope

SCOPE = Scope(
    "GAIA's simulator",
    frozenset({"carbon"}),
    {"gaia": ("scheduling", "carbon", "waiting", "reserved", "start")},
    resources=("cpus",),
)
