"""Seeded workload generators: the same settings and seed give the same trace, on every machine."""

from gantline.traces.generators.making import generate
from gantline.traces.generators.registry import generator_names, summaries

__all__ = ["generate", "generator_names", "summaries"]
