"""What ElasticFlow's rigid baselines share: jobs of a fixed size and duration, arrivals merged into slots, spans."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.systems.elasticflow.imitation.outcome import ElasticFlowOutcome, Span


@dataclass(frozen=True)
class RigidJobs:
    """The baselines' data on every job, in order of arrival."""

    arrival: Floats
    deadline: Floats  # infinity: best effort
    gpus: Ints  # as requested; no other size is used
    duration: Floats  # seconds on that size
    iterations: Floats
    speed: Floats  # iterations per second on that size

    def __len__(self) -> int:
        return len(self.arrival)


class RigidRun:
    """One run: the state that all three have, and the arrivals to come."""

    on_round: Callable[[float, int, int], None] | None = None  # time, jobs that have arrived, jobs inside

    def __init__(self, jobs: RigidJobs, capacity: int, per_node: int, slot: float) -> None:
        self.jobs, self.capacity, self.per_node, self.slot = jobs, capacity, per_node, slot
        n = len(jobs)
        self.size, self.duration = jobs.gpus.tolist(), jobs.duration.tolist()
        self.start, self.end, self.ended = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
        self.rounds = 0
        self.arrivals: list[tuple[float, list[int]]] = []  # by time
        for job, time in enumerate(jobs.arrival.tolist()):
            if self.arrivals and self.arrivals[-1][0] == time:
                self.arrivals[-1][1].append(job)
            else:
                self.arrivals.append((time, [job]))
        self._spans: list[Span] = []
        self._last: dict[int, int] = {}  # a job's latest span

    def round_ended(self, now: float) -> None:
        """Count a round, and report it."""
        self.rounds += 1
        if self.on_round is not None:
            arrived = len(self.jobs) - sum(len(jobs) for _, jobs in self.arrivals)
            self.on_round(now, arrived, arrived - int(np.count_nonzero(self.ended == self.ended)))

    def seconds_to_start(self, gpus: int, restart: bool) -> float:
        """What the artifact takes off the progress of a gang that is started; no range of ranks is ever warm here."""
        base, again = (7.0, 47.0) if self.capacity >= 256 else (2.0, 27.0)
        return base + (again if restart else 0.0) + 2.0 * (math.log2(gpus) + 1.0)

    def is_restart(self, rounds: int) -> bool:
        """Whether trainers are restarted: every n rounds, where n is the seconds of a slot."""
        return rounds > 0 and rounds % self.slot == 0

    def merge_arrivals(self, now: float, single_too: bool = False) -> None:
        """Arrivals at most a slot away come together at its end; a single event keeps its time, but for Themis."""
        near = 0
        while near < len(self.arrivals) and self.arrivals[near][0] - now <= self.slot:
            near += 1
        if near and (len(self.arrivals) > 1 or single_too):
            together = [job for _, jobs in self.arrivals[:near] for job in jobs]
            self.arrivals[:near] = [(now + self.slot, together)]

    def held(self, job: int, begin: float, end: float) -> None:
        """A job held its GPUs from begin to end; what goes on without a gap is one span."""
        last = self._last.get(job)
        if last is not None and self._spans[last].end == begin:
            self._spans[last] = self._spans[last]._replace(end=end)
        else:
            self._last[job] = len(self._spans)
            self._spans.append(Span(job, begin, end, -1, self.size[job]))

    def outcome(self) -> ElasticFlowOutcome:
        """The result."""
        rejected = np.zeros(len(self.jobs), dtype=bool)
        return ElasticFlowOutcome(self.jobs.deadline, self.start, self.end, None, self.ended, rejected, self._spans, self.rounds)
