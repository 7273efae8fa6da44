"""Gavel's own workloads (OSDI 2020, Section 7.1), draw for draw: the same seed gives the same jobs as the original.

Gavel has two generators. The one inside its simulator makes the continuous traces of the paper: durations of minutes to
a week, gangs of one to eight GPUs. A separate script makes the small static traces: durations of one to four hours.
Both use Python's Mersenne Twister, with a generator of its own for each purpose, seeded by the seed plus an offset.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeVar

import polars as pl

from gantline.core.errors import NotFoundError, near
from gantline.core.json_reader import loads
from gantline.traces.generators.drawing import as_trace
from gantline.traces.generators.given import Reader, fault, number, read_given, seconds, truth, whole, word
from gantline.traces.trace import Trace

# Gavel's 26 job templates (OSDI 2020, Table 2), in the order in which its generators draw from them.


class Template(NamedTuple):
    """A model with a batch size; only some can run on more than one GPU."""

    model: str
    batch_size: int | None
    distributable: bool

    @property
    def name(self) -> str:
        """The job type as Gavel's traces and throughput tables spell it."""
        return self.model if self.batch_size is None else f"{self.model} (batch size {self.batch_size})"


_BATCHES: tuple[tuple[str, tuple[int, ...], bool], ...] = (
    ("ResNet-18", (16, 32, 64, 128, 256), True),
    ("ResNet-50", (16, 32, 64, 128), True),
    ("Transformer", (16, 32, 64, 128, 256), True),
    ("LM", (5, 10, 20, 40, 80), True),
    ("Recommendation", (512, 1024, 2048, 4096, 8192), False),
)
TEMPLATES: tuple[Template, ...] = (
    *(Template(model, size, many) for model, sizes, many in _BATCHES for size in sizes),
    Template("A3C", None, False),
    Template("CycleGAN", None, False),
)


class ModelSpeeds:
    """Steps per second of a job type on so many GPUs of one device type, from a table in Gavel's layout."""

    def __init__(self, table: object, device: str) -> None:
        if isinstance(table, str | Path):
            if not Path(table).is_file():
                raise NotFoundError(f"there is no file '{table}'", where="setting 'throughputs'")
            table = loads(Path(table).read_text())
        if not isinstance(table, Mapping):
            raise fault("throughputs", "is neither a table nor the name of a JSON file")
        if device not in table:
            raise fault("device", f"the throughput table has no type '{device}'", near(device, table))
        self._row: Mapping[str, object] = table[device]

    def of(self, job_type: str, gpus: int) -> float:
        """Steps per second when the job has its GPUs for itself."""
        key = throughput_key(job_type, gpus)
        entry = self._row.get(key)
        alone = entry.get("null") if isinstance(entry, Mapping) else entry
        if alone is None:
            raise fault("throughputs", f"the table has no entry {key}")
        return number(alone, "throughputs")


def throughput_key(job_type: str, gpus: int) -> str:
    """The key of a job in Gavel's throughput tables."""
    return f"('{job_type}', {gpus})"


V = TypeVar("V", int, float)


@dataclass(frozen=True, kw_only=True, slots=True)
class GavelSettings:
    """``mean_gap`` is Gavel's lam in seconds (0: all jobs at once); ``throughputs`` turns seconds into steps.

    With ``whole_steps`` the number of steps is cut to a whole one, as in the files that Gavel writes; its simulator
    keeps the fraction. ``duration`` gives every job the same length. ``priorities`` makes a fifth of the jobs five times
    as important, ``slos`` gives every job a deadline of 1.2, 2 or 10 times its duration. ``jobs_per_hour`` is another way to
    say ``mean_gap``. ``steady`` begins with a full cluster: with ``36:36:36`` jobs are there from the start until each of
    three times 36 devices is wanted, and arrivals follow. ``entities`` makes users ``e0``, ``e1``, ... of the jobs in equal blocks.
    """

    jobs: int = 1000
    mean_gap: float = 900.0
    multi_gpu: bool = False
    duration: float | None = None
    priorities: bool = False
    slos: bool = False
    throughputs: object = None
    device: str = "v100"
    whole_steps: bool = False
    jobs_per_hour: float | None = None
    steady: tuple[int, ...] = ()
    entities: int = 0

    def __post_init__(self) -> None:
        if self.jobs_per_hour is not None and self.jobs_per_hour <= 0:
            raise fault("jobs_per_hour", f"{self.jobs_per_hour} is not above zero", "mean_gap=0 lets all jobs arrive at once")
        if self.jobs < 1:
            raise fault("jobs", f"{self.jobs} is not above zero")
        if not 0 <= self.entities <= self.jobs:
            raise fault("entities", f"{self.entities} owners of {self.jobs} jobs", "give 0 (none) or at most as many as there are jobs")
        if self.mean_gap < 0:
            raise fault("mean_gap", f"{self.mean_gap} is below zero", "0 lets all jobs arrive at once")
        if self.duration is not None and self.duration <= 0:
            raise fault("duration", f"{self.duration} is not above zero")

    @property
    def gap(self) -> float:
        """Mean seconds between two arrivals."""
        return self.mean_gap if self.jobs_per_hour is None else 3600.0 / self.jobs_per_hour


_READERS: dict[str, Reader] = {
    "jobs": whole,
    "mean_gap": seconds,
    "multi_gpu": truth,
    "duration": lambda value, field: None if value is None else seconds(value, field),
    "priorities": truth,
    "slos": truth,
    "throughputs": lambda value, _: value,
    "device": word,
    "whole_steps": truth,
    "jobs_per_hour": number,
    "steady": lambda value, field: tuple(whole(part, field) for part in str(value).split(":")),
    "entities": whole,
}
_SCRIPT_READERS = {name: _READERS[name] for name in ("jobs", "mean_gap", "multi_gpu", "throughputs", "device", "jobs_per_hour")}


def simulator(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``gavel``: what Gavel's simulator draws by itself."""
    wanted = GavelSettings(**read_given(given, _READERS))
    jobs, gaps, slos = Random(seed + 2), Random(seed + 3), Random(seed + 6)
    rows: list[_Row] = []
    arrival, missing, arrived = 0.0, list(wanted.steady), 0
    for _ in range(wanted.jobs):
        if arrived and wanted.gap:
            arrival += _exponential(gaps) * wanted.gap
        size = _size(jobs.random(), ((0.7, 1), (0.8, 2), (0.95, 4)), 8)
        gpus = size if wanted.multi_gpu else 1
        length = wanted.duration or _philly_like(jobs)
        template = jobs.choice(TEMPLATES)
        while gpus > 1 and not template.distributable:
            template = jobs.choice(TEMPLATES)
        weight = 5.0 if wanted.priorities and jobs.random() <= 0.2 else 1.0
        slack = _size(slos.random(), ((0.33, 1.2), (0.67, 2.0)), 10.0) if wanted.slos else None
        rows.append(_Row(template, gpus, length, arrival, weight, slack))
        if missing:  # the cluster is being filled
            missing[0] -= gpus
            missing = missing if missing[0] > 0 else missing[1:]
        else:
            arrived += 1
    return _trace(rows, wanted, f"generated: gavel, seed {seed}")


def script(seed: int, given: Mapping[str, object]) -> Trace:
    """The generator called ``gavel-script``: Gavel's script for static and small Poisson traces, whole steps."""
    wanted = GavelSettings(**({"jobs": 60, "mean_gap": 0.0, "whole_steps": True} | read_given(given, _SCRIPT_READERS)))
    templates, gaps, lengths, sizes = (Random(seed + offset) for offset in range(4))
    rows, arrival = [], 0.0
    for job in range(wanted.jobs):
        if job and wanted.gap:
            arrival += _exponential(gaps) * wanted.gap
        template = templates.choice(TEMPLATES)
        many = wanted.multi_gpu and template.distributable
        gpus = _size(sizes.random(), ((0.7, 1), (0.8, 2)), 4) if many else 1
        rows.append(_Row(template, gpus, 3600.0 * lengths.choice((1, 2, 3, 4)), arrival, 1.0, None))
    return _trace(rows, wanted, f"generated: gavel-script, seed {seed}")


@dataclass(frozen=True, slots=True)
class _Row:
    template: Template
    gpus: int
    duration: float
    arrival: float
    weight: float
    slack: float | None


def _exponential(generator: Random) -> float:
    return -math.log(1.0 - generator.random())


def _philly_like(generator: Random) -> float:
    """One job in five runs 17 to 167 hours, the others half an hour to 17 hours; uniform in the logarithm."""
    low, high = (3.0, 4.0) if generator.random() >= 0.8 else (1.5, 3.0)
    return 60.0 * 10.0 ** generator.uniform(low, high)


def _size(uniform: float, steps: tuple[tuple[float, V], ...], last: V) -> V:
    return next((value for below, value in steps if uniform < below), last)


def _trace(rows: list[_Row], wanted: GavelSettings, source: str) -> Trace:
    """The columns that the importer of Gavel's files makes, so that a generated trace and its file are the same."""
    table = None if wanted.throughputs is None else ModelSpeeds(wanted.throughputs, wanted.device)
    durations, work = [], []
    for row in rows:
        speed = 1.0 if table is None else table.of(row.template.name, row.gpus)
        steps = row.duration * speed
        if wanted.whole_steps and table is not None:
            steps = float(int(steps))
        durations.append(steps / speed if wanted.whole_steps else row.duration)
        work.append(steps)
    columns = {
        "job": pl.Series([str(number) for number in range(len(rows))]),
        "arrival": pl.Series([row.arrival for row in rows]),
        "gpus": pl.Series([row.gpus for row in rows], dtype=pl.Int64),
        "duration": pl.Series(durations),
        "model": pl.Series([row.template.model for row in rows]),
        "work": pl.Series(work),
        "batch_size": pl.Series([row.template.batch_size for row in rows], dtype=pl.Int64),
        "throughput_key": pl.Series([throughput_key(row.template.name, row.gpus) for row in rows]),
        "weight": pl.Series([row.weight for row in rows]),
    }
    if wanted.entities:
        columns["user"] = pl.Series([f"e{number * wanted.entities // len(rows)}" for number in range(len(rows))])
    if wanted.slos:
        due = [row.arrival + (row.slack or 0.0) * length for row, length in zip(rows, durations, strict=True)]
        columns["deadline"] = pl.Series(due)
    note = "no throughput table given: one unit of work is one second" if table is None else ""
    return as_trace(columns, source, (note,) if note else ())
