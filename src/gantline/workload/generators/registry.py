"""Which generators there are: a name, where its function lives, and what it makes.

A generator is imported when it is used. Its function takes a seed and the settings that were given.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gantline.core.errors import NotFoundError, UsageError, near

if TYPE_CHECKING:
    from gantline.workload.trace import Trace

MOST_JOBS = 100_000_000
"""More is a slip of the finger, and fits into no memory."""
_HOME = "gantline.workload.generators"
_GENERATORS: dict[str, tuple[str, str]] = {
    "generic": (f"{_HOME}.generic:generic", "no preset; load, sizes, durations, arrivals and people as you set them"),
    "philly": (f"{_HOME}.philly:philly", "like Microsoft's Philly cluster (ATC 2019): small jobs, heavy tails, bursts"),
    "helios": (f"{_HOME}.helios:helios", "like SenseTime's Helios (SC 2021): short jobs, large gangs, day and night"),
    "pai": (f"{_HOME}.pai:pai", "like Alibaba's PAI (NSDI 2022): many short jobs, few heavy users"),
    "day": (f"{_HOME}.day:day", "a day of 600 jobs from three teams on 64 GPUs; the demonstration"),
    "gavel": ("gantline.systems.gavel.generator:simulator", "Gavel's continuous traces (OSDI 2020), the same jobs for the same seed"),
    "gavel-script": ("gantline.systems.gavel.generator:script", "Gavel's small static traces, jobs of one to four hours"),
    "blox": ("gantline.systems.blox.generator:blox", "Blox' default workload (EuroSys 2024), the same jobs for its seed 1"),
    "elasticflow": ("gantline.systems.elasticflow.generator:elasticflow", "ElasticFlow's jobs with deadlines (ASPLOS 2023)"),
    "elastic": (f"{_HOME}.elastic:elastic", "jobs that grow and shrink, with scaling curves or batch sizes of their own"),
    "pollux": (
        "gantline.systems.pollux.generator:pollux",
        "Pollux' workloads (OSDI 2021), the same jobs for the same seed and list of Philly's jobs",
    ),
    "hybrid": ("gantline.systems.allox.generator:hybrid", "jobs for a GPU or a CPU node, like those of AlloX' simulator (EuroSys 2020)"),
    "steady": (f"{_HOME}.benchmark:steady", "benchmark: Philly's jobs, Poisson arrivals, 128 GPUs"),
    "bursty": (f"{_HOME}.benchmark:bursty", "benchmark: day, night and bursts, 128 GPUs"),
    "gangs": (f"{_HOME}.benchmark:gangs", "benchmark: large gangs with a long tail, 256 GPUs"),
    "swarm": (f"{_HOME}.benchmark:swarm", "benchmark: thousands of small, short jobs, 64 GPUs"),
    "mixed": (f"{_HOME}.benchmark:mixed", "benchmark: three device types, deadlines, elastic jobs, 128 GPUs"),
}


def generate(name: str, seed: int = 0, **settings: object) -> Trace:
    """A trace by the generator of this name; the same name, seed and settings give the same trace."""
    if name not in _GENERATORS:
        raise NotFoundError(f"there is no generator '{name}'", where="generate", fix=near(name, _GENERATORS))
    _check_amount(settings.get("jobs"))
    trace: Trace = _function(name)(seed, settings)
    return trace


def load_of_every_seed(name: str, settings: Mapping[str, object]) -> float | None:
    """The load that every seed is stretched to, where both jobs and load are given; None: seeds differ in it."""
    from gantline.workload.generators.settings import WorkloadSettings

    base = getattr(_function(name), "base", None)
    if base is None and name != "generic":
        return None
    read = WorkloadSettings.read(settings, base)
    return read.load if read.jobs is not None else None


def _function(name: str) -> Any:
    module, _, function = _GENERATORS[name][0].partition(":")
    return getattr(import_module(module), function)


def generate_as_set(name: str, seed: int, settings: Mapping[str, Any]) -> Trace:
    """The same with settings as people give them, which may have any name."""
    for own, flag in (("seed", "--seed"), ("name", "the generator's name")):
        if own in settings:
            raise UsageError(f"'{own}' is not a setting of a generator", where="--set", fix=f"it is given by {flag}")
    return generate(name, seed, **settings)


def _check_amount(jobs: Any) -> None:
    try:
        many = float(jobs or 0) > MOST_JOBS
    except (TypeError, ValueError):
        return  # the generator says what it expects
    if many:
        raise UsageError(f"{jobs} jobs are too many", where="setting 'jobs'", fix=f"use at most {MOST_JOBS:,}")


def generator_names() -> tuple[str, ...]:
    """All generators, in the order in which they should be listed."""
    return tuple(_GENERATORS)


def summaries() -> dict[str, str]:
    """What each generator makes, in half a line."""
    return {name: summary for name, (_, summary) in _GENERATORS.items()}
