"""Fair share with memory: whichever user has used least of late, by weight, comes first; usage is forgotten with a half-life.

The rule is that of batch systems (Kay and Lauder, "A Fair Share Scheduler", CACM 1988; Slurm's multi-factor priority): usage in
GPU-seconds decays exponentially, so a user who was busy last week is not punished for ever. It holds for users, queues, or
both: queues first, then users inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Misfit, Plan
from gantline.core.policy import Policy
from gantline.core.queues import ancestors
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about


@dataclass(frozen=True)
class FairShare(Policy):
    """Least decayed usage per weight first; inside one account by arrival."""

    name: ClassVar[str] = "fair-share"
    paper: ClassVar[str] = "Kay, Lauder: A Fair Share Scheduler (CACM 1988); Slurm multi-factor priority"

    ranks: ClassVar[bool] = True

    by: str = field(
        default="user",
        metadata=about(
            "whose usage counts: 'user', 'queue', or 'queue,user' (queues first, users inside)", one_of=("user", "queue", "queue,user")
        ),
    )
    half_life: float = field(
        default=86400.0, metadata=about("seconds after which usage counts half; inf: never forget", above=0.0, unit="seconds")
    )
    preempt: bool = field(default=True, metadata={"help": "whether running gangs give way"})

    def order_moves(self) -> bool:
        return self.preempt

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = snapshot.jobs
        usage, rows, spent = self._usage(snapshot)
        rank = jobs.arrival / (snapshot.now + 1.0)  # within [0, 1]: settles order inside an account
        scale = 2.0
        for account in reversed(self.by.split(",")):
            names = snapshot.users if account == "user" else snapshot.queues
            codes = jobs.user if account == "user" else jobs.queue
            weight = np.ones(len(names))
            np.maximum.at(weight, codes, jobs.weight if account == "user" else 1.0)
            if account == "queue":
                weight = np.array([_weight(snapshot, name) for name in names])
            share = np.array([usage.get(f"{account}:{name}", 0.0) for name in names]) / weight
            position = np.empty(len(names))
            position[np.lexsort((np.arange(len(names)), share))] = np.arange(len(names))
            rank = position[codes] * scale + rank
            scale *= len(names) + 1.0
        memory = {"usage": usage, "rows": rows, "spent": spent, "at": snapshot.now}
        return Plan.rank(rank, misfit=Misfit.SKIP, preempt=self.preempt, memory=memory)

    def _usage(self, snapshot: Snapshot) -> tuple[dict[str, float], Ints, Floats]:
        """Decayed GPU-seconds per account, and the active jobs that have been charged, each with how much."""
        jobs, users, queues = snapshot.jobs, snapshot.users, snapshot.queues
        ran = np.flatnonzero(jobs.attained_gpu > 0.0)  # most waiting jobs have never run
        rows, spent = jobs.rows[ran], jobs.attained_gpu[ran]
        memory = _recall(snapshot.memory) or {"usage": {}, "rows": rows[:0], "spent": spent[:0], "at": snapshot.now}
        fade = 1.0 if math.isinf(self.half_life) else 0.5 ** ((snapshot.now - memory["at"]) / self.half_life)
        usage = {name: value * fade for name, value in memory["usage"].items() if value * fade > 1e-6}
        fresh = spent - _known(memory["rows"], memory["spent"], rows)
        new = np.flatnonzero(fresh > 0.0)
        columns = (column.tolist() for column in (jobs.user[ran[new]], jobs.queue[ran[new]], fresh[new]))
        for user, queue, more in zip(*columns):
            for account in (f"user:{users[user]}", f"queue:{queues[queue]}"):
                usage[account] = usage.get(account, 0.0) + more
        return usage, rows, spent


def _recall(memory: Any) -> dict[str, Any]:
    """What was remembered; a service that was upgraded may bring charges by the names of rows, as they were once kept."""
    if not memory or "charged" not in memory:
        return memory or {}
    charged = sorted((int(row), spent) for row, spent in memory["charged"].items())
    rows, spent = np.array([row for row, _ in charged], dtype=np.int64), np.array([had for _, had in charged], dtype=np.float64)
    return {**memory, "rows": rows, "spent": spent}


def _known(rows: Ints, values: Floats, asked: Ints) -> Floats:
    """The values of the rows asked for, both in ascending order; zero where there is none."""
    at = np.searchsorted(rows, asked)
    there = at < len(rows)
    there[there] = rows[at[there]] == asked[there]
    found = np.zeros(len(asked))
    found[there] = values[at[there]]
    return found


def _weight(snapshot: Snapshot, queue: str) -> float:
    """The weight of a queue: the product down the tree."""
    tree = snapshot.queue_tree
    return math.prod(tree[name].weight for name in ancestors(queue) if name in tree)
