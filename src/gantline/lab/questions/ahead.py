"""What is known of the jobs before another, where some of them have no estimate: then no instant is named.

A length that nobody knows is a guess, with which policies can decide, and from which no start follows that could be shown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.columns import Job, Option
from gantline.core.insiders import tables_behind
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.simulator.rollout import Futures


def unestimated(snapshot: Snapshot) -> set[int]:
    """Places of the jobs whose length is unknown."""
    blind = tables_behind(snapshot).unestimated
    return {place for place, row in enumerate(snapshot.jobs.rows.tolist()) if row in blind} if blind else set()


def known_ahead(snapshot: Snapshot, rolled: Futures, places: Sequence[int]) -> list[str]:
    """For each of these jobs what is known of those that hold or get its devices first, if any is of unknown length; else nothing."""
    blind = unestimated(snapshot)
    if not blind:
        return [""] * len(places)
    begins, gpus = np.median(rolled.start, axis=0), np.asarray(snapshot.jobs.gpus)
    blinds = np.isin(np.arange(len(begins)), list(blind))
    ran = np.isfinite(rolled.start).all(axis=0) & np.isfinite(rolled.finish).all(axis=0) & ~blinds
    hours = np.zeros(len(begins))
    hours[ran] = np.median(rolled.finish[:, ran] - rolled.start[:, ran], axis=0) * gpus[ran] / 3600.0
    may_use = _types(tables_behind(snapshot), snapshot.jobs.rows)
    found = []
    for place in places:
        before = (begins < begins[place]) & may_use[:, may_use[place]].any(axis=1)
        unknown = int(np.count_nonzero(before & blinds))
        found.append(_told(int(np.count_nonzero(before)), float(hours[before].sum()), unknown) if unknown else "")
    return found


def _types(tables: Tables, rows: Ints) -> Bools:
    """Which types of devices each job may have, by (job, type)."""
    count = tables.I[Job.OPTION_COUNT, rows]
    option = np.concatenate([np.arange(first, first + some) for first, some in zip(tables.I[Job.OPTION_FIRST, rows], count)])
    found = np.zeros((len(rows), len(tables.cluster.types)), dtype=np.bool_)
    found[np.repeat(np.arange(len(rows)), count), tables.options.I[Option.TYPE, option]] = True
    return found


def _told(jobs: int, hours: float, unknown: int) -> str:
    """Such as ``8 jobs, 14 GPU-hours ahead, 3 of unknown length``."""
    known = f", {hours:.3g} GPU-hours" if hours > 0.0 else ""
    return f"{jobs} job{'s' if jobs != 1 else ''}{known} ahead, {unknown} of unknown length"
