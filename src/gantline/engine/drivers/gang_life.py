"""A gang on the machines of the faulty executor: what it has done, what of that is saved, and what it would report."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gantline.engine.executor import News, Order


@dataclass(eq=False)
class GangLife:
    """One incarnation of a job on machines, from the order that starts it until its devices are free."""

    row: int
    epoch: int
    devices: tuple[int, ...]
    base: float  # work at `runs_from`
    rate: float
    runs_from: float  # since when it progresses at this rate
    mates: frozenset[int] = frozenset()
    node: int = -1
    pause: float = 0.0  # seconds from its start to its first progress
    revision: int = 0
    saves: int = 0  # how often it was asked to save
    most: float = math.inf  # of its work, so much is kept at its end: in a trial only what there was before
    suspended: bool = False
    up: float = 0.0  # when it was started
    resumed: float = 0.0  # from how much work
    state: str = "starting"  # starting, running, stopping, stopped, finished, failed
    saved: bool = False
    done: float = 0.0  # final work, once it is saved or over
    safe: float = 0.0  # work at the last save before `runs_from`
    ended: float = 0.0
    course: int = 0  # how often its speed has changed: a finish is foreseen for one course
    beats: int = 0  # heartbeats since it ended

    @property
    def alive(self) -> bool:
        return self.state in _ALIVE

    def work(self, now: float, total: float) -> float:
        return min(total, self.base + self.rate * max(0.0, now - self.runs_from))

    def safe_work(self, now: float, total: float, interval: float) -> float:
        """Work that survives: saves are counted from the first progress, one every `interval`."""
        first = self.up + self.pause
        last = first + math.floor((now - first) / interval + 1e-9) * interval if math.isfinite(interval) else -math.inf
        if self.saved or last <= first or last < self.runs_from:
            return self.done if self.saved else self.safe
        return min(total, self.base + self.rate * (last - self.runs_from))

    def news(self) -> News | None:
        """The report about it now."""
        if self.state == "running":
            return News.SUSPENDED if self.suspended else News.STARTED
        if self.state == "stopping":
            return News.SAVED if self.saved else None
        return _AT_THE_END.get(self.state)


_ALIVE = frozenset({"starting", "running", "stopping"})
_AT_THE_END = {"stopped": News.STOPPED, "finished": News.FINISHED, "failed": News.FAILED}


def uses(gang: Order | GangLife, node: int, devices: frozenset[int]) -> bool:
    """Whether a gang, running or about to start, needs that machine."""
    return gang.node == node or not devices.isdisjoint(gang.devices)
