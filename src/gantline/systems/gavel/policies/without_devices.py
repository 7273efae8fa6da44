"""Jobs that run on CPUs alone, beside those that Gavel divides devices among."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gantline.core.arrays import Bools
from gantline.core.columns import Option
from gantline.core.jobs_now import Jobs
from gantline.core.plan import ASSIGNMENT_DEFAULTS, Assignments, Plan
from gantline.core.snapshot import Snapshot


def on_devices(snapshot: Snapshot) -> Bools:
    """Which jobs have a way to run on devices."""
    jobs, gpus = snapshot.jobs, snapshot.options.I[Option.GPUS]
    if gpus.all():
        return np.ones(len(jobs), dtype=bool)
    return np.array([gpus[first : first + count].any() for first, count in zip(jobs.option_first, jobs.option_count)], dtype=bool)


def decide_beside(snapshot: Snapshot, shared: Bools, decide: Callable[[Snapshot], Plan]) -> Plan:
    """Decide about the jobs that share devices as if they were alone; the others take nothing from them and get their first option."""
    jobs = snapshot.jobs
    plan = decide(replace(snapshot, jobs=Jobs(snapshot.lent, jobs.rows[shared], snapshot.now)))
    given, alone = plan.assignments, np.flatnonzero(~shared)
    if given is None:
        return plan
    columns = {}
    for name in ("group", "mode", "share"):
        if given.has(name):
            columns[name] = np.concatenate((given.column(name), np.full(len(alone), ASSIGNMENT_DEFAULTS[name])))
    columns["option"] = np.concatenate((given.column("option"), np.zeros(len(alone), dtype=np.int64)))
    places = np.concatenate((np.flatnonzero(shared)[given.job], alone))
    return replace(plan, assignments=Assignments(job=places, **columns))
