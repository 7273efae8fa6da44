"""Jobs start in order until one does not fit: Lucid's baselines that stop no job (fifo, sjf, qssf), and its profiler."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from math import inf

from gantline.systems.lucid.imitation.jobs import LucidJob, LucidOutcome, VirtualCluster
from gantline.systems.lucid.imitation.nodes import Held, LucidNodes, give_back

Key = Callable[[LucidJob], float]


class RunningQueue:
    """Jobs that wait and jobs that run to their end, on one list of nodes."""

    def __init__(self, nodes: LucidNodes, jobs: Sequence[LucidJob], seconds: Callable[[LucidJob], int]) -> None:
        self.nodes, self._jobs, self._seconds = nodes, jobs, seconds
        self.waiting: list[LucidJob] = []
        self._next, self._ends = 0, list[tuple[int, int, Held]]()

    def next_event(self) -> float:
        """When the next job comes or ends."""
        arrival = self._jobs[self._next].submit if self._next < len(self._jobs) else inf
        return min(arrival, self._ends[0][0] if self._ends else inf)

    @property
    def idle(self) -> bool:
        """Whether no job waits, runs or is to come."""
        return not self.waiting and not self._ends and self._next == len(self._jobs)

    def advance(self, now: int) -> int:
        """Free what has ended and let new jobs in; how many came."""
        while self._ends and self._ends[0][0] <= now:
            give_back(heapq.heappop(self._ends)[2])
        first = self._next
        while self._next < len(self._jobs) and self._jobs[self._next].submit <= now:
            self.waiting.append(self._jobs[self._next])
            self._next += 1
        return self._next - first

    def start_in_order(self, now: int) -> list[tuple[LucidJob, int, Held]]:
        """Start jobs from the front until one cannot be placed: (job, its end, what it holds)."""
        started = []
        for job in self.waiting:
            held = self.nodes.take(job.gpus)
            if held is None:
                break
            end = now + self._seconds(job)
            heapq.heappush(self._ends, (end, job.row, held))
            started.append((job, end, held))
        del self.waiting[: len(started)]
        return started


def run_in_order(cluster: VirtualCluster, outcomes: Sequence[LucidOutcome], *, key: Key, newcomers: Key | None = None) -> int:
    """Start jobs by ascending key; how many passes that took.

    `newcomers`: jobs are sorted by this first, and by the key only once a job waits that came in an earlier second (qssf).
    """
    queue = RunningQueue(cluster.nodes, cluster.jobs, lambda job: job.duration)
    passes, again = 0, inf
    while (now := min(queue.next_event(), again)) < inf:
        came, again = queue.advance(int(now)), inf
        if newcomers is not None:
            queue.waiting.sort(key=newcomers)
        only_newcomers = newcomers is not None and came == len(queue.waiting)
        if not only_newcomers:
            queue.waiting.sort(key=key)
        for job, end, held in queue.start_in_order(int(now)):
            found = outcomes[job.row]
            found.start, found.end, found.waited = int(now), end, int(now) - job.submit
            found.ran(int(now), end, held)
        if only_newcomers and queue.waiting:
            again = now + 1
        passes += 1
    return passes
