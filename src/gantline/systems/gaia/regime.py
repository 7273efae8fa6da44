"""GAIA's simulator (ASPLOS 2024): ticks of five seconds, thirty days, machines bought as they are needed.

Nothing ever lacks a machine: a job runs on reserved, spot or on-demand CPUs. Its rules are in docs/policies/gaia.md.
"""

from gantline.engine.imitations.registry import Scope
from gantline.engine.regime import Regime

REGIME = Regime(name="gaia", tick=5.0, cluster="cpu:1x0/1000000c")

# What GAIA's simulator reads: one policy with the flags of its command line, and the carbon intensity.
SCOPE = Scope(
    "GAIA's simulator",
    frozenset({"carbon"}),
    {"gaia": ("scheduling", "carbon", "waiting", "reserved", "start")},
    resources=("cpus",),
)
