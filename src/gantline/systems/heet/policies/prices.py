"""The price of a way to run: time to the end, more for what others wait for, less for what is used well.

price = T (1 + kappa pressure share) / efficiency^lambda. T is the remaining time in that way; pressure the devices that waiting jobs
need at least, over all there are; share the part of the cluster's worth that the way takes, where a device type is worth what jobs gain
by it on average; efficiency the speed per device over that of the job's best way. (Heet, ASPLOS 2024, prices configurations between
scaling and scheduling efficiency; the formula is ours.)
"""

from __future__ import annotations

from dataclasses import dataclass

from gantline.systems.heet.policies.ways import HeetWays, Way

_LEAST = 1e-6


@dataclass(frozen=True)
class Prices:
    """Prices for one instant: of every way of every job, and of having nothing, which is to wait and then have the cheapest."""

    table: dict[int, dict[Way, float]]
    idle: dict[int, float]

    def of(self, job: int, way: Way | None) -> float:
        """The price of a way; None: of no devices."""
        return self.idle[job] if way is None else self.table[job][way]


def price_all(ways: HeetWays, capacity: list[int], kappa: float, power: float) -> Prices:
    """Prices of all ways of all jobs."""
    worth = _worth(ways, len(capacity))
    total = max(sum(worth[kind] * count for kind, count in enumerate(capacity)), _LEAST)
    needed = sum(min(count for _, count in ways.speed[job]) for job in ways.speed if job not in ways.held and ways.speed[job])
    pressure = needed / max(sum(capacity), 1)
    table = {}
    for job, speeds in ways.speed.items():
        best = max((speed / count for (_, count), speed in speeds.items()), default=1.0)
        table[job] = {
            (kind, count): ways.left[job] / speed * (1.0 + kappa * pressure * worth[kind] * count / total) / (speed / count / best) ** power
            for (kind, count), speed in speeds.items()
        }
    wait = min((ways.time(job, way) for job, way in ways.held.items()), default=0.0)  # until a job ends
    idle = {}
    for job, speeds in ways.speed.items():
        shortest = ways.left[job] / max(speeds.values(), default=1.0)
        idle[job] = min(table[job].values(), default=0.0) * (1.0 + wait / max(shortest, _LEAST))
    return Prices(table, idle)


def _worth(ways: HeetWays, kinds: int) -> list[float]:
    """Per device type the mean speed of one device there, relative to each job's best."""
    sums, counts = [0.0] * kinds, [0] * kinds
    for speeds in ways.speed.values():
        best: dict[int, float] = {}
        for (kind, count), speed in speeds.items():
            best[kind] = max(best.get(kind, 0.0), speed / count)
        top = max(best.values(), default=1.0)
        for kind, speed in best.items():
            sums[kind] += speed / top
            counts[kind] += 1
    return [total / number if number else 1.0 for total, number in zip(sums, counts)]
