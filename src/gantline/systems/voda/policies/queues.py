"""Voda's two Tiresias queues: demotion after an hour of GPU-time, promotion after long waiting.

A job begins in the queue its priority names (zero and above: the first; below: the second). Service counts since the last promotion, as in
Tiresias (Gu et al., NSDI 2019, section 3.2); Voda counts it since the last start, so that a preemption forgives everything, and promotes a
demoted job again as soon as it restarts. The memory holds, per promoted job, its service and run time at that moment.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.snapshot import Snapshot

#: Queues change at times that were computed by division; what is this close counts as reached.
_CLOSE = 1e-6


@dataclass(frozen=True)
class Queues:
    """The queue of every job now, and what decides when it changes."""

    queue: Ints
    promoted: dict[str, list[float]]  # row -> [GPU-seconds, seconds] at its last promotion
    gained: Floats  # GPU-seconds since then
    ran: Floats  # seconds since then

    def next_change(self, snapshot: Snapshot, grants: Ints, limit: float, knob: float) -> float:
        """When a queue changes by itself if every job of the snapshot has the given devices from now on."""
        jobs, times = snapshot.jobs, [math.inf]
        if (moving := (grants > 0) & (self.queue == 0)).any():
            times.append(float(((limit - self.gained[moving]) / grants[moving]).min()))
        if (waiting := (grants == 0) & (self.queue > 0) & (jobs.attained > 0)).any():
            times.append(float((knob * self.ran[waiting] - jobs.waiting[waiting]).min()))
        return snapshot.now + max(min(times), 0.0)


def read_queues(snapshot: Snapshot, promoted: dict[str, Any], limit: float, knob: float) -> Queues:
    """Queues now; a job that has waited `knob` times as long as it ran since its last promotion returns to the first."""
    jobs, rows = snapshot.jobs, [str(row) for row in snapshot.jobs.rows.tolist()]
    base = np.array([promoted.get(row, (0.0, 0.0)) for row in rows]).reshape(-1, 2)
    gained, ran = jobs.attained_gpu - base[:, 0], jobs.attained - base[:, 1]
    named = np.maximum(-jobs.priority, 0.0).astype(np.int64)
    named[[place for place, row in enumerate(rows) if row in promoted]] = 0
    queue = np.where(gained >= limit - _CLOSE, np.maximum(named, 1), named)
    back = ~jobs.running & (queue > 0) & (jobs.attained > 0) & (jobs.waiting >= knob * ran - _CLOSE)
    kept = {row: [float(value) for value in promoted[row]] for row in rows if row in promoted}
    for place in np.flatnonzero(back).tolist():
        kept[rows[place]] = [float(jobs.attained_gpu[place]), float(jobs.attained[place])]
    zero = np.zeros(len(rows))
    return Queues(np.where(back, 0, queue), kept, np.where(back, zero, gained), np.where(back, zero, ran))
