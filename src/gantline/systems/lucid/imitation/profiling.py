"""The first phase of Lucid's simulator: small jobs of all virtual clusters run for some minutes on two nodes of their own.

Jobs that end there are done. The others begin again in the main phase, which does not wait for this one. In bursts a node is borrowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from gantline.core.errors import RefusedError
from gantline.systems.lucid.imitation.forecast import SubmissionForecast
from gantline.systems.lucid.imitation.in_order import RunningQueue
from gantline.systems.lucid.imitation.jobs import LucidJob, LucidOutcome
from gantline.systems.lucid.imitation.nodes import GPUS, Held, LucidNode, LucidNodes

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
