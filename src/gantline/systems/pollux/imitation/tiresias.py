"""Tiresias in Pollux' simulator: two queues by attained GPU time, in each first come first; a job that does not fit is skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gantline.core.arrays import Ints
from gantline.systems.pollux.imitation.placing import Nodes, free_devices, take

LIMIT = 57600.0  # GPU-seconds in the first queue: sixteen GPU-hours


@dataclass
class TiresiasInPollux:
    """The queues, and how long each job has run."""

    requested: Ints
    capacity: Sequence[int]
    limit: float = LIMIT
    first: dict[int, None] = field(default_factory=dict)
    second: dict[int, None] = field(default_factory=dict)
    executed: dict[int, float] = field(default_factory=dict)
    checked: float = 0.0

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        """Which job gets which nodes; jobs that are not named get none."""
        present = set(active)
        for queue in (self.first, self.second):
            for job in [job for job in queue if job not in present]:
                del queue[job]
        passed, self.checked = now - self.checked, now
        for job in active:
            if job not in self.executed:
                self.executed[job] = 0.0
                self.first[job] = None
            elif held[job]:
                self.executed[job] += passed
                if job in self.first and self.executed[job] * self.requested[job] >= self.limit:
                    del self.first[job]
                    self.second[job] = None
        left, running = sum(self.capacity), []
        for job in [*self.first, *self.second]:
            if self.requested[job] <= left:
                left -= int(self.requested[job])
                running.append(job)
        kept = {job: held[job] for job in running if held[job]}
        free = free_devices(self.capacity, kept.values())
        return {job: kept.get(job) or take(free, int(self.requested[job])) for job in running}
