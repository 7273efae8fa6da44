"""What Tiresias' own simulator does, for runs that must equal it: three queues kept as lists from event to event.

Where it departs from the paper: a job is demoted by at most one queue per event; the next demotion is expected after
(limit - time run) / GPUs, rounded down, although the limit is in GPU-seconds; the Gittins index uses integer arithmetic and does not
subtract what was attained.
"""

from __future__ import annotations

import bisect
import math
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

import numpy as np

from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot

LIMITS = (3250.0, 7200.0)


def artifact_plan(
    snapshot: Snapshot, limits: tuple[float, ...], promote: float, by_gpu: bool, gittins: list[tuple[float, float]] | None
) -> Plan:
    """One event: update every job in order of arrival, then walk the queues."""
    jobs = snapshot.jobs
    rows = jobs.rows.tolist()
    at = {row: i for i, row in enumerate(rows)}
    blank = {"queues": [[] for _ in range(len(limits) + 1)], "base": {}, "waited": {}, "seen": snapshot.now}
    memory: dict[str, Any] = snapshot.memory or blank
    queues = [[row for row in queue if row in at] for queue in memory["queues"]]
    known = {row: level for level, members in enumerate(queues) for row in members}
    base: dict[str, float] = {k: v for k, v in memory["base"].items() if int(k) in at}
    waited: dict[str, float] = {k: v for k, v in memory["waited"].items() if int(k) in at}
    for row in rows:
        if row not in known:
            queues[0].append(row)
    gpus, run, running = jobs.gpus.tolist(), jobs.attained.tolist(), jobs.running.tolist()
    executed = {row: run[at[row]] - base.get(str(row), 0.0) for row in rows}
    for row in rows:
        if row not in known:
            continue
        level, position = known[row], at[row]
        if running[position]:
            service = executed[row] * gpus[position] if by_gpu else executed[row]
            if level < len(limits) and service >= limits[level]:
                queues[level].remove(row)
                queues[level + 1].append(row)
                known[row] = level + 1
        elif executed[row] > 0.0:
            waited[str(row)] = waited.get(str(row), 0.0) + snapshot.now - memory["seen"]
            if level > 0 and math.isfinite(promote) and waited[str(row)] >= int(executed[row] * promote):
                base[str(row)] = run[position]
                waited[str(row)] = 0.0
                executed[row] = 0.0
                queues[level].remove(row)
                queues[0].append(row)
    if gittins is not None:
        arrival = jobs.arrival
        for queue in queues:
            queue.sort(key=lambda row: (-_index(gittins, executed[row] * gpus[at[row]]), arrival[at[row]]))
    key = np.empty(len(rows))
    room = _Room(snapshot)
    runs: set[int] = set()
    for rank, row in enumerate(row for queue in queues for row in queue):
        key[at[row]] = rank
        if room.take(at[row], gpus[at[row]]):
            runs.add(row)
    jump = math.inf
    for q, queue in enumerate(queues):
        queue.sort(key=lambda row: row not in runs)  # waiting jobs stand behind running ones
        for row in queue:
            if row in runs and q < len(limits):
                left = limits[q] - executed[row]
                jump = min(jump, snapshot.now + (left // gpus[at[row]] if by_gpu else left))
            elif row not in runs and q > 0 and executed[row] > 0.0 and math.isfinite(promote):
                left = float(int(executed[row] * promote - waited.get(str(row), 0.0)))
                if left > 0:
                    jump = min(jump, snapshot.now + left)
    after = {"queues": queues, "base": base, "waited": waited, "seen": snapshot.now}
    return Plan.rank(key, memory=after, valid_until=jump if jump > snapshot.now else math.inf)


class _Room:
    """Devices that are left while the queues are walked, per type; the original has one type."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.jobs, self.free = snapshot.jobs, snapshot.cluster.capacity.tolist()

    def take(self, position: int, gpus: int) -> bool:
        """Whether the job fits on a type that it can use: where it runs already, or else the first that has room."""
        for kind in self._types(position, gpus):
            if gpus <= self.free[kind]:
                self.free[kind] -= gpus
                return True
        return False

    def _types(self, position: int, gpus: int) -> list[int]:
        if len(self.free) == 1:
            return [0]
        listed = [option.type for option in self.jobs.options(position) if option.gpus == gpus]
        return sorted(listed, key=lambda kind: kind != self.jobs.type[position])


@lru_cache(maxsize=8)
def gittins_table(sample: tuple[float, ...], delta: float) -> list[tuple[float, float]]:
    """(GPU-time, index) per sample value, with the artifact's integer arithmetic."""
    data = sorted(int(v) for v in sample)
    n = len(data)
    sums = np.concatenate([[0], np.cumsum(data)])
    table = []
    for value in data:
        after = value - 1
        first = bisect.bisect_right(data, after)
        last = bisect.bisect_right(data, after + delta)
        if last >= n:
            last = n - 1
        chance = _round((last - first) / (n - first), 5)
        expected = int((sums[last] - sums[first] + int(delta) * (n - last)) // (n - first))
        table.append((float(value), _round(chance * 1_000_000 / expected, 4)))
    return table


def _round(value: float, digits: int) -> float:
    """Halves away from zero, as the original's Python 2 does: 1/64 is 0.01563 to five digits."""
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def _index(table: list[tuple[float, float]], attained: float) -> float:
    """The index of the first sample value above what was attained; 0 beyond the last."""
    position = bisect.bisect_right(table, (attained, math.inf))
    return table[position][1] if position < len(table) else 0.0
