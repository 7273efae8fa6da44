"""Gandiva (Xiao et al., OSDI 2018), its time slicing: when not all jobs fit, they take turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about


@dataclass(frozen=True)
class Gandiva(Policy):
    """Round robin of whole gangs: the one that has waited longest since its last turn comes first, and any that fits runs."""

    name: ClassVar[str] = "gandiva"
    paper: ClassVar[str] = "Xiao et al.: Gandiva: Introspective Cluster Scheduling for Deep Learning (OSDI 2018), section 3"

    slice: float = field(
        default=60.0,
        metadata=about(
            "seconds of a turn; in between no gang is preempted (regime 'elasticflow': its own)", above=0.0, finite=True, unit="seconds"
        ),
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        memory: dict[str, Any] = snapshot.memory or {}
        jobs, now = snapshot.jobs, snapshot.now
        seen = memory.get("seen", {})  # when a job last had its turn
        since = np.array([seen.get(str(row), came) for row, came in zip(jobs.rows.tolist(), jobs.arrival.tolist())])
        since = np.where(jobs.running, now, since)
        over = now >= memory.get("until", -math.inf) - 1e-9
        until = now + self.slice if over else memory["until"]
        kept = {
            str(row): float(at)
            for row, at, runs in zip(jobs.rows.tolist(), since.tolist(), jobs.running.tolist())
            if runs or str(row) in seen
        }
        return Plan.rank(since, preempt=over, valid_until=until, memory={"until": until, "seen": kept})
