"""Lucid's baselines in its simulator: those that start jobs in order (fifo, sjf, qssf) and those that stop jobs (srtf, tiresias)."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from gantline.systems.lucid.imitation.jobs import GPUS, Held, LucidJob, LucidNodes, LucidOutcome, VirtualCluster, give_back

# Jobs start in order until one does not fit: Lucid's baselines that stop no job (fifo, sjf, qssf), and its profiler.


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


# Lucid's baselines that stop jobs (srtf, tiresias): a walk over all jobs shares out the GPUs of the virtual cluster by number.
#
# The walk does not ask whether a gang can be placed. A job that cannot keeps the GPUs that the walk gave it, unused,
# and waits. A running job that overtakes a waiting one leaves the result of a walk as it is: the waiting one either
# stays without GPUs or both have theirs. So walks are needed only where jobs come or end, after a walk that changed
# something and, under tiresias, where a job leaves the first queue.

_RESTART, _RESTART_WIDE = 40, 60
_FIRST_QUEUE = 18_000  # GPU seconds
_TURN = 60


@dataclass(eq=False)
class QuotaEntry:
    """A job that waits or runs. A stop in the pass of second `p` finds `p - since` seconds of work done."""

    job: LucidJob
    left: int
    attained: int = 0
    since: int = -1
    waits_since: int = 0
    held: Held = ()

    def left_at(self, now: int) -> int:
        return self.left - (now - self.since) if self.held else self.left

    def attained_at(self, now: int) -> int:
        return self.attained + self.job.gpus * (now - self.since) if self.held else self.attained

    @property
    def end(self) -> int:
        """When it ends, left alone: the second after its work is done."""
        return self.since + self.left + 1

    @property
    def leaves_first_queue(self) -> float:
        """The second in which its attained service first exceeds that of the first queue."""
        return self.since + (_FIRST_QUEUE - self.attained) // self.job.gpus + 1 if self.attained <= _FIRST_QUEUE else inf


class QuotaWalk:
    """One virtual cluster under srtf or tiresias."""

    def __init__(self, cluster: VirtualCluster, outcomes: Sequence[LucidOutcome], *, by_service: bool) -> None:
        self._nodes, self._outcomes, self._by_service = cluster.nodes, outcomes, by_service
        self._coming = [QuotaEntry(job, job.duration) for job in reversed(cluster.jobs)]
        self._queue: list[QuotaEntry] = []
        self._running: list[QuotaEntry] = []  # by their most recent start

    def run(self) -> int:
        """Run until no job can change anything any more; how many walks that took."""
        walks, due = 0, inf
        while (event := min(self._next_event(), due)) < inf:
            now = int(event)
            self._advance(now)
            due = min(due, self._turn_at_or_after(now))
            if now < due:
                continue
            changed = self._walk(now)
            walks += 1
            due = min(self._turn_at_or_after(now + 1) if changed else inf, self._next_crossing(now))
        return walks

    def _turn_at_or_after(self, time: float) -> float:
        return -(-time // _TURN) * _TURN if self._by_service else time

    def _next_event(self) -> float:
        arrival = self._coming[-1].job.submit if self._coming else inf
        return min(arrival, min((entry.end for entry in self._running), default=inf))

    def _next_crossing(self, now: int) -> float:
        """The first turn that finds a running job beyond the first queue which the walk of `now` found within it."""
        if not self._by_service:
            return inf
        leaving = (entry.leaves_first_queue for entry in self._running)
        return self._turn_at_or_after(min((time for time in leaving if time > now), default=inf))

    def _advance(self, now: int) -> None:
        """End what is done, let new jobs in."""
        for entry in self._running:
            if entry.end <= now:
                self._outcomes[entry.job.row].end = entry.end
                self._release(entry, now)
        self._running = [entry for entry in self._running if entry.held]
        while self._coming and self._coming[-1].job.submit <= now:
            entry = self._coming.pop()
            entry.waits_since = entry.job.submit
            self._queue.append(entry)

    def _walk(self, now: int) -> bool:
        """Share out GPUs by number, stop what gets none, start what can be placed; whether anything changed."""
        quota = self._nodes.gpus
        stop, start = [], []
        for entry in self._order(now):
            if entry.job.gpus <= quota:
                quota -= entry.job.gpus
                if not entry.held:
                    start.append(entry)
            elif entry.held:
                stop.append(entry)
        for entry in stop:
            self._stop(entry, now)
        started = {entry for entry in start if self._start(entry, now)}
        if stop:
            self._running = [entry for entry in self._running if entry.held]
        if started:
            self._queue = [entry for entry in self._queue if entry not in started]
        return bool(stop or started)

    def _order(self, now: int) -> list[QuotaEntry]:
        if not self._by_service:
            return sorted([*self._queue, *self._running], key=lambda entry: entry.left_at(now))
        everyone = sorted([*self._running, *self._queue], key=lambda entry: entry.job.submit)
        return sorted(everyone, key=lambda entry: entry.attained_at(now) > _FIRST_QUEUE)

    def _stop(self, entry: QuotaEntry, now: int) -> None:
        entry.left = entry.left_at(now) + (_RESTART_WIDE if entry.job.gpus > GPUS else _RESTART)
        entry.attained = entry.attained_at(now)
        self._outcomes[entry.job.row].preemptions += 1
        self._release(entry, now)
        entry.waits_since = now
        self._queue.append(entry)

    def _start(self, entry: QuotaEntry, now: int) -> bool:
        held = self._nodes.take(entry.job.gpus)
        if held is None:
            return False
        entry.held, entry.since = held, now
        found = self._outcomes[entry.job.row]
        found.start = now if found.start < 0 else found.start
        found.waited += now - entry.waits_since
        self._running.append(entry)
        return True

    def _release(self, entry: QuotaEntry, now: int) -> None:
        self._outcomes[entry.job.row].ran(entry.since, now, entry.held)
        give_back(entry.held)
        entry.held = ()
