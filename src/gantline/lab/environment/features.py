"""What a learned policy sees: a row of numbers per job and one for the cluster, pure functions of a snapshot.

Times are logarithms, because they span six orders of magnitude; numbers of devices are shares of the cluster. All lie between -1 and 2.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.snapshot import Snapshot

JOB_FEATURES = ("present", "waiting", "attained", "remaining", "gpus", "least", "most", "running", "fits", "slack", "priority", "chosen")
CLUSTER_FEATURES = ("free", "running", "queue", "asked", "hidden")
LOW, HIGH = -1.0, 2.0
_DECADES = 7.0  # a logarithm of 1 is 10**7 seconds, four months


def job_features(snapshot: Snapshot) -> Floats:
    """A row per job of the snapshot; `JOB_FEATURES` names the columns."""
    jobs, total = snapshot.jobs, max(1, snapshot.cluster.gpus)
    slack = jobs.deadline - snapshot.now - jobs.remaining
    known = np.where(np.isnan(slack), 0.0, slack)
    columns = (
        np.ones(len(jobs)),
        _log(jobs.waiting),
        _log(jobs.attained),
        _log(jobs.remaining),
        jobs.gpus / total,
        jobs.min_gpus / total,
        jobs.max_gpus / total,
        jobs.running,
        jobs.gpus <= snapshot.cluster.free,
        np.sign(known) * _log(np.abs(known)),
        np.tanh(jobs.priority),
        np.zeros(len(jobs)),
    )
    return np.clip(np.stack([np.asarray(one, dtype=np.float64) for one in columns], axis=1), LOW, HIGH)


def cluster_features(snapshot: Snapshot, hidden: int = 0) -> Floats:
    """Numbers about the whole; `CLUSTER_FEATURES` names them. `hidden`: jobs that have no row."""
    jobs, total = snapshot.jobs, max(1, snapshot.cluster.gpus)
    waits: Bools = ~jobs.running
    numbers = [
        snapshot.cluster.free / total,
        _count(int(jobs.running.sum())),
        _count(int(waits.sum())),
        float(jobs.gpus[waits].sum()) / total,
        _count(hidden),
    ]
    return np.clip(np.array(numbers, dtype=np.float64), LOW, HIGH)


def shown(snapshot: Snapshot, slots: int, running: bool) -> Ints:
    """The positions of the jobs that have a row: those that wait in order of arrival, then, where they count, those that run."""
    runs = snapshot.jobs.running
    order = np.concatenate([np.flatnonzero(~runs), np.flatnonzero(runs) if running else np.zeros(0, dtype=np.int64)])
    return order[:slots]


def _log(seconds: Floats) -> Floats:
    return np.log10(1.0 + np.maximum(np.where(np.isfinite(seconds), seconds, 10.0**_DECADES), 0.0)) / _DECADES


def _count(number: int) -> float:
    return float(np.log10(1.0 + number) / 3.0)
