"""Blox' workload (EuroSys 2024), draw for draw: seed 1 gives the jobs that its simulator gives.

Blox reads a Philly log, but by default takes only the number of jobs from it. The durations of the whole list are drawn
first, as in Gavel; then, job by job, a gap in whole seconds. After each gap Blox draws one of its nine models and never
uses it, which shifts the gaps that follow. The list is used again from its beginning when it runs out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

import polars as pl

from gantline.traces.generators.drawing import as_trace
from gantline.traces.generators.given import check_above_zero, fault, settings_of, whole
from gantline.traces.trace import Trace

_MODELS = range(9)
_EARLY = "start=2.5;floor=0.5;rate=20.74"  # 2 exp(-0.4 rate) is just below 0.0005: within 0.1 % of 0.5 after 40 %
_LATE = "start=2.5;floor=0.5;rate=2"


@dataclass(frozen=True, kw_only=True, slots=True)
class BloxSettings:
    """``list_jobs`` is the length of the list that the log would give; ``sizes`` are its GPU counts, used in turn.

    ``small`` draws Blox' shorter durations. ``early`` gives jobs a loss curve: that part of them is within 0.1 % of its lowest loss after
    40 % of its work, the loss of the others falls to the end. It is drawn apart, so that jobs and arrivals stay the same.
    """

    jobs: int = 1000
    jobs_per_hour: float = 6.0
    small: bool = False
    sizes: tuple[int, ...] = (1,)
    list_jobs: int = 2000
    early: float | None = None

    def __post_init__(self) -> None:
        check_above_zero(self, "jobs", "jobs_per_hour", "list_jobs")
        if self.early is not None and not 0.0 <= self.early <= 1.0:
            raise fault("early", f"{self.early:g} is not a part of the jobs, from 0 to 1")
        if not self.sizes or min(self.sizes) < 1:
            raise fault("sizes", "needs GPU counts of at least one, as in 1,1,2,4")


def _sizes(value: object, field: str) -> tuple[int, ...]:
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, Sequence) else (value,)
    return tuple(whole(part, field) for part in parts)


def blox(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``blox``."""
    wanted = settings_of(BloxSettings, given, sizes=_sizes)
    generator = Random(seed)
    durations = [_duration(generator, wanted.small) for _ in range(wanted.list_jobs)]
    arrivals, now = [], 0
    for _ in range(wanted.jobs):
        now += math.ceil(-math.log(1.0 - generator.random()) / wanted.jobs_per_hour * 3600.0)
        arrivals.append(float(now))
        generator.choice(_MODELS)
    places = [index % wanted.list_jobs for index in range(wanted.jobs)]
    columns = {
        "job": pl.Series([str(index) for index in range(wanted.jobs)]),
        "arrival": pl.Series(arrivals),
        "gpus": pl.Series([wanted.sizes[place % len(wanted.sizes)] for place in places], dtype=pl.Int64),
        "duration": pl.Series([durations[place] for place in places]),
    }
    if wanted.early is not None:
        apart = Random(f"loss {seed}")
        columns["loss"] = pl.Series([_EARLY if apart.random() < wanted.early else _LATE for _ in places])
    return as_trace(columns, f"generated: blox, seed {seed}")


def _duration(generator: Random, small: bool) -> float:
    """Minutes as powers of ten: 80 % shorter ones, 20 % longer ones."""
    shorter, longer = ((1.5, 2.5), (2.5, 2.7)) if small else ((1.5, 3.0), (3.0, 4.0))
    low, high = longer if generator.random() >= 0.8 else shorter
    return float(60.0 * 10.0 ** generator.uniform(low, high))
