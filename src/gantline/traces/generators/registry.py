"""Which generators there are: a name, where its function lives, and what it makes.

A generator is imported when it is used. Its function takes a seed and the settings that were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gantline.core.errors import UsageError
from gantline.registry import Register, of_kind

Made = TypeVar("Made")
MOST_JOBS = 100_000_000
"""More is a slip of the finger, and fits into no memory."""
_HOME = "gantline.traces.generators"
_GENERATORS = Register(
    "generators",
    {
        "generic": (f"{_HOME}.generic:generic", "no preset; load, sizes, durations, arrivals and people as you set them"),
        "philly": (f"{_HOME}.presets:philly", "like Microsoft's Philly cluster (ATC 2019): small jobs, heavy tails, bursts"),
        "helios": (f"{_HOME}.presets:helios", "like SenseTime's Helios (SC 2021): short jobs, large gangs, day and night"),
        "pai": (f"{_HOME}.presets:pai", "like Alibaba's PAI (NSDI 2022): many short jobs, few heavy users"),
        "day": (f"{_HOME}.presets:day", "a day of 600 jobs from three teams on 64 GPUs; the demonstration"),
        "elastic": (f"{_HOME}.elastic:elastic", "jobs that grow and shrink, with scaling curves or batch sizes of their own"),
        "steady": (f"{_HOME}.presets:steady", "benchmark: Philly's jobs, Poisson arrivals, 128 GPUs"),
        "bursty": (f"{_HOME}.presets:bursty", "benchmark: day, night and bursts, 128 GPUs"),
        "gangs": (f"{_HOME}.presets:gangs", "benchmark: large gangs with a long tail, 256 GPUs"),
        "swarm": (f"{_HOME}.presets:swarm", "benchmark: thousands of small, short jobs, 64 GPUs"),
        "mixed": (f"{_HOME}.presets:mixed", "benchmark: three device types, deadlines, elastic jobs, 128 GPUs"),
    },
    where="generate",
)


def make(name: str, seed: int, settings: Mapping[str, object], kind: type[Made]) -> Made:
    """What the generator of this name makes; the same name, seed and settings make the same."""
    function = _GENERATORS.load(name)
    _check_amount(settings.get("jobs"))
    return of_kind(function(seed, settings), kind, f"generator '{name}'")


def load_of_every_seed(name: str, settings: Mapping[str, object]) -> float | None:
    """The load that every seed is stretched to, where both jobs and load are given; None: seeds differ in it."""
    from gantline.traces.generators.settings import WorkloadSettings  # with SciPy: a plain run generates nothing

    base = getattr(_GENERATORS.load(name), "base", None)
    if base is None and name != "generic":
        return None
    read = WorkloadSettings.read(settings, base)
    return read.load if read.jobs is not None else None


def _check_amount(jobs: Any) -> None:
    try:
        many = float(jobs or 0) > MOST_JOBS
    except (TypeError, ValueError):
        return  # the generator says what it expects
    if many:
        raise UsageError(f"{jobs} jobs are too many", where="setting 'jobs'", fix=f"use at most {MOST_JOBS:,}")


def generator_names() -> tuple[str, ...]:
    """All generators, in the order in which they should be listed."""
    return tuple(_GENERATORS.entries())


def is_generator(text: str) -> bool:
    """Whether a text names a generator; a file of that name goes before a generator of an installed package."""
    if text in _GENERATORS.general:
        return True
    there = Path(text).exists()
    if there and Path(text).suffix:  # none of ours is called like that, and a run need not read manifests to know it
        return False
    return text in _GENERATORS.own() or (not there and _GENERATORS.find(text) is not None)


def summaries() -> dict[str, str]:
    """What each of our generators makes, in half a line."""
    return {name: entry.summary for name, entry in _GENERATORS.own().items()}
