"""Optimus (EuroSys 2018) in Pollux' simulator, with an oracle: each device goes to the job whose remaining time falls most by it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gantline.systems.pollux.imitation.placing import Nodes, free_devices, take


@dataclass
class OptimusInPollux:
    """What the oracle gives of each job: seconds a step by devices, and the steps to come."""

    capacity: Sequence[int]
    step_time: Callable[[int], Sequence[float]]  # of a job: index is devices, its length is one more than it may have
    remaining: Callable[[int], float]

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]:
        """Which job gets which nodes; jobs that are not named get none."""
        sizes = self._sizes(active)
        kept = {job: held[job] for job, size in sizes.items() if len(held[job]) == size}
        free = free_devices(self.capacity, kept.values())
        found = dict(kept)
        for job in sorted((job for job in sizes if job not in kept), key=sizes.__getitem__):
            found[job] = take(free, sizes[job])
        return found

    def _sizes(self, active: Sequence[int]) -> dict[int, int]:
        """One device each while there are any, then the one that saves most, again and again."""
        left = sum(self.capacity)
        sizes = dict.fromkeys(active[:left], 1)
        left -= len(sizes)
        known = {job: (self.step_time(job), self.remaining(job)) for job in sizes}
        gains: list[tuple[float, int, int]] = []
        for place, job in enumerate(sizes):
            _offer(gains, *known[job], 1, place, job)
        while left and gains:
            _, place, job = heapq.heappop(gains)
            sizes[job] += 1
            left -= 1
            _offer(gains, *known[job], sizes[job], place, job)
        return sizes


def _offer(gains: list[tuple[float, int, int]], times: Sequence[float], steps: float, size: int, place: int, job: int) -> None:
    """What one more device would save a job of so many steps."""
    if size + 1 < len(times):
        gain = (times[size] - times[size + 1]) * steps
        if gain > 0.0:
            heapq.heappush(gains, (-gain, place, job))
