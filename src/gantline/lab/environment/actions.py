"""What an action means: three kinds of action, each of which turns numbers into a plan.

A queue that is never served would never end, so where nothing runs and an action starts nothing, the first job that can start is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.options import JobSize
from gantline.core.plan import Assignment, Plan
from gantline.core.snapshot import Snapshot

if TYPE_CHECKING:
    from gymnasium import Space


SIZES = ("none", "smallest", "asked for", "largest")


class Actions(Protocol):
    """A kind of decision."""

    ranks: bool  # whether its plans are orders
    shows_running: bool  # whether jobs that run have rows, too

    def space(self, slots: int) -> Space[Any]:
        """The actions that there are."""

    def answer(self, snapshot: Snapshot, shown: Ints, chosen: list[int], action: Any) -> Plan | None:
        """The plan; None: the same question goes on, because another job may be chosen at this instant."""

    def allowed(self, snapshot: Snapshot, shown: Ints, chosen: list[int], slots: int) -> Bools | None:
        """Which actions do something, where they can be listed."""


class OrderTheQueue:
    """A number per row: the greatest goes first. With `preempt`, jobs that run have rows and may be stopped."""

    ranks = True

    def __init__(self, preempt: bool = False) -> None:
        self.preempt = self.shows_running = preempt

    def space(self, slots: int) -> Space[Any]:
        from gymnasium.spaces import Box

        return Box(-1.0, 1.0, (slots,), np.float32)

    def answer(self, snapshot: Snapshot, shown: Ints, chosen: list[int], action: Any) -> Plan:
        key = np.full(len(snapshot.jobs), 2.0)  # jobs without a row come last
        key[shown] = -np.asarray(action, dtype=np.float64)[: len(shown)]
        return Plan.rank(key, preempt=self.preempt, valid_until=np.inf)

    def allowed(self, snapshot: Snapshot, shown: Ints, chosen: list[int], slots: int) -> None:
        return None


class PickTheNext:
    """A row: that job starts next, if it fits; the last action starts no more at this instant."""

    ranks = True
    shows_running = False

    def space(self, slots: int) -> Space[Any]:
        from gymnasium.spaces import Discrete

        return Discrete(slots + 1)

    def answer(self, snapshot: Snapshot, shown: Ints, chosen: list[int], action: Any) -> Plan | None:
        row = int(action)
        if row < len(shown) and self._fits(snapshot, shown, chosen)[row]:
            chosen.append(int(shown[row]))
            if self._fits(snapshot, shown, chosen).any():
                return None
        if not chosen and not snapshot.jobs.running.any():
            return Plan.rank(snapshot.jobs.arrival, preempt=False, valid_until=np.inf)
        key = np.where(snapshot.jobs.running, -1.0, np.inf)
        key[chosen] = np.arange(len(chosen))
        return Plan.rank(key, preempt=False, valid_until=np.inf)

    def allowed(self, snapshot: Snapshot, shown: Ints, chosen: list[int], slots: int) -> Bools:
        found = np.zeros(slots + 1, dtype=bool)
        found[: len(shown)] = self._fits(snapshot, shown, chosen)
        found[slots] = True
        return found

    def _fits(self, snapshot: Snapshot, shown: Ints, chosen: list[int]) -> Bools:
        gpus = snapshot.jobs.gpus
        left = snapshot.cluster.free - int(gpus[chosen].sum())
        return (gpus[shown] <= left) & ~np.isin(shown, chosen)


class PickSizes:
    """A size per row: none, the smallest, what was asked for, or the largest; rows are served in order while devices are left."""

    ranks = False
    shows_running = True

    def space(self, slots: int) -> Space[Any]:
        from gymnasium.spaces import MultiDiscrete

        return MultiDiscrete([len(SIZES)] * slots)

    def answer(self, snapshot: Snapshot, shown: Ints, chosen: list[int], action: Any) -> Plan:
        jobs, left = snapshot.jobs, snapshot.cluster.capacity.copy()
        found = []
        for place in np.setdiff1d(np.flatnonzero(jobs.running), shown).tolist():  # jobs without a row keep what they have
            found.append(Assignment(place, type=int(jobs.type[place]), gpus=int(jobs.held[place])))
            left[jobs.type[place]] -= jobs.held[place]
        wanted = dict(zip(shown.tolist(), np.asarray(action).tolist()))
        for place in sorted(wanted):  # in order of arrival
            size = _size(jobs.sizes(place), wanted[place], int(jobs.gpus[place]), left)
            if size is not None:
                found.append(Assignment(place, type=size.type, gpus=size.gpus))
                left[size.type] -= size.gpus
        if not found:
            first = [(place, size) for place in range(len(jobs)) if (size := _size(jobs.sizes(place), 1, 0, left)) is not None][:1]
            found = [Assignment(place, type=size.type, gpus=size.gpus) for place, size in first]
        return Plan.assign(found, valid_until=np.inf)

    def allowed(self, snapshot: Snapshot, shown: Ints, chosen: list[int], slots: int) -> None:
        return None


def _size(sizes: list[JobSize], wanted: int, requested: int, left: Ints) -> JobSize | None:
    """The size that is meant, or the largest below it that is left; of several types the fastest."""
    if not wanted or not sizes:
        return None
    least, most = min(size.gpus for size in sizes), max(size.gpus for size in sizes)
    meant = (0, least, min(max(requested, least), most), most)[wanted]
    fits = [size for size in sizes if size.gpus <= meant and size.gpus <= left[size.type]]
    return max(fits, key=lambda size: (size.gpus, size.rate), default=None)


KINDS = {"order": OrderTheQueue, "pick": PickTheNext, "sizes": PickSizes}


# What a learned policy sees: a row of numbers per job and one for the cluster, pure functions of a snapshot.
#
# Times are logarithms, because they span six orders of magnitude; numbers of devices are shares of the cluster. All lie between -1 and 2.

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
