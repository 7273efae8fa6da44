"""Seeded workload generators: the same settings and seed give the same trace, on every machine."""

from __future__ import annotations

from collections.abc import Mapping

from gantline.core.errors import UsageError
from gantline.traces.generators.registry import generator_names, summaries
from gantline.traces.trace import Trace

__all__ = ["generate", "generate_as_set", "generator_names", "summaries"]


def generate(name: str, seed: int = 0, **settings: object) -> Trace:
    """A trace by the generator of this name; the same name, seed and settings give the same trace."""
    return Trace.generate(name, seed, **settings)


def generate_as_set(name: str, seed: int, settings: Mapping[str, object]) -> Trace:
    """The same with settings as people give them, which may have any name."""
    for own, flag in (("seed", "--seed"), ("name", "the generator's name")):
        if own in settings:
            raise UsageError(f"'{own}' is not a setting of a generator", where="--set", fix=f"it is given by {flag}")
    return generate(name, seed, **settings)
