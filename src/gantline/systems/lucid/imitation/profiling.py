"""The first phase of Lucid's simulator, in which small jobs are profiled, with the forecasts it goes by and the node that it borrows."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError
from gantline.systems.lucid.imitation.baselines import RunningQueue
from gantline.systems.lucid.imitation.jobs import GPUS, Held, LucidJob, LucidNode, LucidNodes, LucidOutcome
from gantline.systems.lucid.traces import FIRST

# Forecasts of how many jobs, and how many GPUs, are asked for in the ten minutes to come, as Lucid's simulator reads them.


_STEP = 600
_AHEAD = 5


class SubmissionForecast:
    """One column of a table with a row per ten minutes of September."""

    def __init__(self, values: Floats) -> None:
        whole = max(len(values) - _AHEAD - 1, 0)
        means = np.zeros(whole)
        for ahead in range(1, _AHEAD + 1):
            means += values[ahead : ahead + whole]
        self.means: list[float] = (means / _AHEAD).tolist()
        """Per row, the mean of the five that follow; of all that are left, where fewer than six are."""
        self.means += [float(np.mean(values[first:])) for first in range(whole + 1, len(values))]

    def after(self, now: int) -> float | None:
        """What is expected after this second; None: no forecast is left."""
        step = (now - FIRST) // _STEP
        return self.means[step] if step < len(self.means) else None


class SharingSwitch:
    """Sharing is off while few jobs are expected. The original looks every 100 s, and the forecast changes every 600."""

    def __init__(self, forecast: SubmissionForecast, few: float) -> None:
        self._on = [mean > few for mean in forecast.means] + [True]
        changes = [step for step in range(1, len(self._on)) if self._on[step] != self._on[step - 1]]
        self._switches = [FIRST + _STEP * step for step in changes]

    def on_at(self, now: int) -> bool:
        return self._on[min((now - FIRST) // _STEP, len(self._on) - 1)]

    def next_switch(self, now: int) -> float:
        """When it is next switched on or off."""
        at = bisect_right(self._switches, now)
        return self._switches[at] if at < len(self._switches) else inf


# The first phase of Lucid's simulator: small jobs of all virtual clusters run for some minutes on two nodes of their own.
#
# Jobs that end there are done. The others begin again in the main phase, which does not wait for this one. In bursts a node is borrowed.

SECONDS = 200
WIDEST = 8
_LEND_EVERY, _RETURN_EVERY = 10, 100
_LONG, _SHORT = 10, 5  # jobs in the queue: more than these borrow a node, fewer give it back
_QUIET = 5 * WIDEST  # GPUs asked for in ten minutes


class NodeLoan(NamedTuple):
    """A node is lent to the profiler (+1) or given back (-1)."""

    time: int
    nodes: int


@dataclass
class ProfilerNodes:
    """The small cluster in which jobs are profiled."""

    devices: Sequence[Sequence[int]]  # of its nodes
    lent_devices: Sequence[int]  # of the node that it borrows
    forecast: SubmissionForecast
    loans: list[NodeLoan] = field(default_factory=list)

    def run(self, jobs: Sequence[LucidJob], outcomes: Sequence[LucidOutcome]) -> int:
        """Profile what is small enough; how many passes that took."""
        nodes = LucidNodes(self.devices)
        queue = RunningQueue(nodes, [job for job in jobs if job.gpus <= WIDEST], lambda job: min(job.duration, SECONDS))
        lent: LucidNode | None = None
        self._kept_without_forecast = False
        passes, again = 0, inf
        while not queue.idle:
            now = int(min(queue.next_event(), again))
            queue.advance(now)
            queue.waiting.sort(key=lambda job: job.gpus)
            for job, end, held in queue.start_in_order(now):
                self._profiled(job, outcomes[job.row], now, end, held)
            again = inf
            if lent is None and now % _LEND_EVERY == 0 and len(queue.waiting) > _LONG:
                lent = LucidNode(len(nodes.nodes), self.lent_devices)
                nodes.nodes.append(lent)
                self.loans.append(NodeLoan(now, 1))
                again = now + 1
            elif lent is not None and now % _RETURN_EVERY == 0 and self._returns(now, len(queue.waiting), lent):
                nodes.nodes.remove(lent)
                lent = None
                self.loans.append(NodeLoan(now, -1))
            if lent is None and len(queue.waiting) > _LONG:
                again = min(again, _next_multiple(now, _LEND_EVERY))
            elif lent is not None:
                again = min(again, _next_multiple(now, _RETURN_EVERY))
            passes += 1
        if lent is not None:
            what = "profiling ends while a node is on loan, and Lucid's simulator aborts there"
            raise RefusedError(what, where="--regime lucid", fix="use the default regime")
        return passes

    def _profiled(self, job: LucidJob, found: LucidOutcome, now: int, end: int, held: Held) -> None:
        found.profiled, found.profiling_wait, found.profile_end = True, now - job.submit, end
        if job.duration <= SECONDS:
            found.done_in_profiling = True
            found.start, found.end, found.waited = now, end, now - job.submit
            found.ran(now, end, held)
            found.nodes = ""  # the original names nodes of the main phase only

    def _returns(self, now: int, waiting: int, lent: LucidNode) -> bool:
        """Whether the node goes back. Where no forecast is left, the first occasion is let pass."""
        if waiting >= _SHORT or lent.free < GPUS:
            return False
        expected = self.forecast.after(now)
        if expected is None:
            expected = 0.0 if self._kept_without_forecast else inf
            self._kept_without_forecast = True
        return expected <= _QUIET


def _next_multiple(now: int, step: int) -> int:
    return (now // step + 1) * step


# The node that a virtual cluster lends to the profiler, with the original's way of naming nodes and of losing count of them.

_RETURNED = 9999
"""How every node is called that has come back."""


class NodeLender:
    """Follows the profiler's loans. Where no node is idle nothing is lent, and the return still brings one: a node too many."""

    def __init__(self, loans: Sequence[NodeLoan], devices: Sequence[int], *, only_lent: bool = False) -> None:
        """`only_lent`: nothing comes back unless it was lent."""
        self._loans, self._devices, self._lent_before = deque(loans), devices, False
        self._only_lent, self._out = only_lent, False

    def next_change(self) -> float:
        return self._loans[0].time if self._loans else inf

    def act(self, now: int, nodes: LucidNodes) -> bool:
        """Lend or take back what is due; whether the nodes changed."""
        changed = False
        while self._loans and self._loans[0].time <= now:
            lend = self._loans.popleft().nodes > 0
            changed |= self._lend(nodes) if lend else self._take_back(nodes)
        return changed

    def _lend(self, nodes: LucidNodes) -> bool:
        idle = [node for node in nodes.nodes if node.free == GPUS]
        if not idle:
            return False
        chosen = max(idle, key=lambda node: node.name)
        if self._lent_before and chosen.name < _RETURNED:
            for node in nodes.nodes:
                node.name = chosen.name if node.name == _RETURNED else node.name
        nodes.nodes.remove(chosen)
        self._devices, self._lent_before, self._out = chosen.devices, True, True
        return True

    def _take_back(self, nodes: LucidNodes) -> bool:
        was_out, self._out = self._out, False
        if any(node.name == _RETURNED for node in nodes.nodes) or (self._only_lent and not was_out):
            return False
        nodes.nodes.append(LucidNode(_RETURNED, self._devices))
        return True
