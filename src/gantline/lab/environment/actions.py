"""What an action means: three kinds of action, each of which turns numbers into a plan.

A queue that is never served would never end, so where nothing runs and an action starts nothing, the first job that can start is started.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.plan import Assignment, Plan
from gantline.core.sizes import JobSize
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
