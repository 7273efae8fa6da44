"""A trace from the name of a generator, a seed and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.traces.trace import Trace


def generate(name: str, seed: int = 0, **settings: object) -> Trace:
    """A trace by the generator of this name; the same name, seed and settings give the same trace."""
    from gantline.traces.trace import Trace  # which imports NumPy: names of generators are listed without it

    return Trace.generate(name, seed, **settings)


def generate_as_set(name: str, seed: int, settings: Mapping[str, object]) -> Trace:
    """The same with settings as people give them, which may have any name."""
    for own, flag in (("seed", "--seed"), ("name", "the generator's name")):
        if own in settings:
            raise UsageError(f"'{own}' is not a setting of a generator", where="--set", fix=f"it is given by {flag}")
    return generate(name, seed, **settings)
