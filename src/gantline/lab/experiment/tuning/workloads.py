"""Workloads: what settings are tried on, and what is held back to see whether they hold elsewhere.

A workload is the jobs of a file, or what a generator draws with one seed. Seeds of a run on the same file are no other jobs, so they stay
on one side. One file alone is cut in time: the end of it is held back, as the future is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gantline.core.errors import UsageError
from gantline.lab.experiment.setting import Setting

FEWEST_JOBS = 20
"""Of a part of a file that is tuned on, or held back."""


@dataclass(frozen=True)
class JobSet:
    """Jobs, with every seed that is run on them."""

    name: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Workloads:
    """What is searched on, and what is not."""

    tuned_on: tuple[JobSet, ...]
    held_back: tuple[JobSet, ...]


def workloads_of(bases: Sequence[Setting], seeds: Sequence[int], share: float, seed: int, folder: Path) -> Workloads:
    """The workloads of these traces, `share` of them held back; `folder` takes the parts of a file that is cut."""
    if not 0.0 <= share < 1.0:
        raise UsageError(f"{share:g} is not a share below 1", where="--hold-back", fix="write 0.4, or 0 to hold nothing back")
    found = _distinct([one for base in bases for one in _of_trace(base, seeds)])
    if not share:
        return Workloads(tuple(found), ())
    if len(found) == 1:
        found, held = _cut(found[0], share, folder)
        return Workloads(tuple(found), tuple(held))
    count = min(max(1, round(share * len(found))), len(found) - 1)
    order = np.random.default_rng(seed).permutation(len(found))
    held_back = set(order[:count].tolist())
    return Workloads(
        tuple(one for place, one in enumerate(found) if place not in held_back),
        tuple(one for place, one in enumerate(found) if place in held_back),
    )


def _of_trace(base: Setting, seeds: Sequence[int]) -> list[JobSet]:
    trace = base.trace
    name = trace.generator or Path(trace.file).name
    if trace.generator and trace.seed is None:
        return [JobSet(f"{name} seed={seed}", (replace(base, seed=seed),)) for seed in seeds]
    return [JobSet(name, tuple(replace(base, seed=seed) for seed in seeds))]


def _distinct(found: list[JobSet]) -> list[JobSet]:
    """Refuse the same jobs under two names: they would be on both sides."""
    seen: dict[str, str] = {}
    for one in found:
        setting = one.settings[0]
        jobs = setting.trace.load(setting.seed).hash
        if jobs in seen:
            raise UsageError(f"'{seen[jobs]}' and '{one.name}' are the same jobs", where="--trace", fix="give each once")
        seen[jobs] = one.name
    return found


def _cut(one: JobSet, share: float, folder: Path) -> tuple[list[JobSet], list[JobSet]]:
    """The beginning and the end of the jobs, in order of arrival."""
    from gantline.lab.experiment.source import TraceSource
    from gantline.traces.trace import Trace

    trace = one.settings[0].trace.load(one.settings[0].seed)
    frame = trace.frame.sort("arrival", maintain_order=True)
    first = frame.height - round(share * frame.height)
    if min(first, frame.height - first) < FEWEST_JOBS:
        what = f"{frame.height} jobs are too few to hold {share:g} of them back"
        fix = f"give several --trace, more jobs (at least {FEWEST_JOBS} a side), or --hold-back 0"
        raise UsageError(what, where="--hold-back", fix=fix)
    parts = []
    for name, rows in (("beginning", frame[:first]), ("end", frame[first:])):
        file = Trace.from_frame(rows, f"{trace.source}, {name}").save(folder / f"{name}.parquet")
        source = TraceSource(file=str(file))
        parts.append([JobSet(f"{one.name}, {name}", tuple(replace(setting, trace=source) for setting in one.settings))])
    return parts[0], parts[1]
