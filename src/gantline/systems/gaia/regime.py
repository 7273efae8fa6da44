"""GAIA's simulator (ASPLOS 2024): ticks of five seconds, thirty days, machines bought as they are needed.

Nothing ever lacks a machine: a job runs on reserved, spot or on-demand CPUs. Its rules are in docs/policies/gaia.md.
"""

from gantline.engine.regime import Regime

REGIME = Regime(name="gaia", tick=5.0, cluster="cpu:1x0/1000000c")
