"""Blox' workloads (EuroSys 2024): its files, its default workload draw for draw, and two with changing load."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import polars as pl

from gantline.core.errors import near
from gantline.traces.generators.drawing import as_trace
from gantline.traces.generators.given import check_above_zero, fault, settings_of, whole
from gantline.traces.importers.table import Sieve, number, read_foreign, text
from gantline.traces.trace import Trace

# Blox workloads (EuroSys 2024): ``job_index,arrival_s,total_iterations,iteration_time_s,num_gpus``.
#
# The run time is the product of iterations and seconds per iteration. Blox rounds nothing, so iterations may be broken.


def read(src: Path) -> Trace:
    """The jobs of a Blox workload; times are kept as they are."""
    raw = read_foreign(src, ("job_index", "arrival_s", "total_iterations", "iteration_time_s", "num_gpus"))
    iterations = number(raw, "total_iterations", required=True)
    frame = pl.DataFrame(
        {
            "job": text(raw, "job_index"),
            "arrival": number(raw, "arrival_s", required=True),
            "gpus": number(raw, "num_gpus", required=True),
            "duration": iterations * number(raw, "iteration_time_s", required=True),
        }
    )
    return Sieve(frame, raw).finish(from_zero=False)


# Blox' workload (EuroSys 2024), draw for draw: seed 1 gives the jobs that its simulator gives.
#
# Blox reads a Philly log, but by default takes only the number of jobs from it. The durations of the whole list are drawn
# first, as in Gavel; then, job by job, a gap in whole seconds. After each gap Blox draws one of its nine models and never
# uses it, which shifts the gaps that follow. The list is used again from its beginning when it runs out.

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


# Blox' two workloads with changing load (EuroSys 2024, Figures 14 and 15), made after their descriptions.
#
# Long jobs come all the time. Short ones come beside them: ``dual``, at four times the rate for six hours of every ten;
# ``small-large``, four times as many as long ones come in an hour, all at once every four hours. The released
# generators of both do not run, and their draws are not published.

_USUAL = {"dual": 6.0, "small-large": 5.0}  # long jobs per hour
_LONG, _SHORT = (36_000, 86_400), (600, 3_600)  # seconds
_CYCLE, _ON = 36_000.0, 21_600.0
_BURST = 14_400.0
_TIMES = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangingSettings:
    """``hours`` during which jobs arrive; ``jobs_per_hour`` are long ones (none: 6, or 5 with bursts)."""

    kind: str = "dual"
    hours: float = 60.0
    jobs_per_hour: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in _USUAL:
            raise fault("kind", f"there is no kind '{self.kind}'", near(self.kind, _USUAL))
        for name in ("hours", "jobs_per_hour"):
            if getattr(self, name) is not None and not getattr(self, name) > 0.0:
                raise fault(name, f"{getattr(self, name):g} is not above zero")


def changing(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``blox-changing``."""
    wanted = settings_of(ChangingSettings, given)
    random, end = np.random.default_rng(seed), wanted.hours * 3600.0
    rate = wanted.jobs_per_hour or _USUAL[wanted.kind]
    rows = [(at, float(random.integers(*_LONG))) for at in _arrivals(random, rate, end)]
    if wanted.kind == "dual":
        short = [at for at in _arrivals(random, _TIMES * rate, end) if at % _CYCLE < _ON]
    else:
        short = np.repeat(np.arange(_BURST, end, _BURST), int(_TIMES * rate)).tolist()
    rows += [(at, float(random.integers(*_SHORT))) for at in short]
    rows.sort()
    columns = {
        "job": pl.Series([f"j{place}" for place in range(len(rows))]),
        "arrival": pl.Series([at for at, _ in rows]),
        "gpus": pl.Series([1] * len(rows), dtype=pl.Int64),
        "duration": pl.Series([work for _, work in rows]),
    }
    return as_trace(columns, f"generated: blox-changing {wanted.kind}, seed {seed}")


def _arrivals(random: np.random.Generator, rate: float, end: float) -> list[float]:
    """Poisson arrivals in whole seconds, the first behind the end included."""
    found, now = [], 0.0
    while now < end:
        now += float(np.ceil(random.exponential(3600.0 / rate)))
        found.append(now)
    return found
