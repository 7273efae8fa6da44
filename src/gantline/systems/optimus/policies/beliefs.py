"""What Optimus believes of a job: its speed by servers and workers, and the time that is left of it, from its measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline.core.snapshot import Snapshot
from gantline.models.convergence import epochs_left
from gantline.models.parameter_servers import ServerSpeed, fit_speed
from gantline.policies.elastic.pools import Pool


@dataclass(frozen=True)
class Belief:
    """A fitted speed, what was measured itself (which counts for more), and epochs to go in steps."""

    left: float
    fitted: ServerSpeed
    measured: dict[tuple[int, int], float]

    def time(self, servers: int, workers: int) -> float:
        """How long it would take to the end, up to a factor of the job."""
        return self.left / (self.measured.get((servers, workers)) or self.fitted.speed(servers, workers))


def slow_nodes(snapshot: Snapshot, rows: list[str], before: dict[str, list[int]]) -> dict[str, list[int]]:
    """Nodes that jobs shun, by row: those before, and those where a worker has less than half the median speed of its job's workers."""
    learned, found = snapshot.learned or {}, dict(before)
    for row, job in zip(rows, snapshot.jobs.ids):
        workers = learned.get(job, {}).get("workers", [])
        if len(workers) > 1:
            middle = float(np.median([speed for _, speed in workers]))
            slow = {int(node) for node, speed in workers if speed < 0.5 * middle}
            found |= {row: sorted(slow | set(found.get(row, ())))} if slow else {}
    return found


def read_beliefs(pool: Pool) -> list[Belief]:
    """One per job of the pool."""
    snapshot = pool.snapshot
    model: Any = snapshot.performance
    learned, ids, done = snapshot.learned or {}, snapshot.jobs.ids, snapshot.jobs.done
    found = []
    for job in pool.jobs.tolist():
        declared = model.declared(ids[job])
        seen = learned.get(ids[job], {"speeds": [], "losses": []})
        fitted = fit_speed(declared.mode, declared.batch, [*model.profiled(ids[job]), *seen["speeds"]])
        epochs = epochs_left(seen["losses"], declared.drop, model.progress(ids[job], float(done[job])))
        found.append(Belief(epochs * declared.steps, fitted, {(int(p), int(w)): speed for p, w, speed in seen["speeds"]}))
    return found
