"""Fair share with memory: whichever user has used least of late, by weight, comes first; usage is forgotten with a half-life.

The rule is that of batch systems (Kay and Lauder, "A Fair Share Scheduler", CACM 1988; Slurm's multi-factor priority): usage in
GPU-seconds decays exponentially, so a user who was busy last week is not punished for ever. It holds for users, queues, or
both: queues first, then users inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Misfit, Plan
from gantline.core.policy import Policy, param
from gantline.core.queues import ancestors
from gantline.core.snapshot import Snapshot

_DIGITS = 6  # usage that is equal to a millionth of a GPU-second is equal: sums have last digits of their own
_LEAST = 1e-6  # GPU-seconds; what is less is forgotten


@dataclass(frozen=True)
class FairShare(Policy):
    """Least decayed usage per weight first; inside one account by arrival."""

    name: ClassVar[str] = "fair-share"
    paper: ClassVar[str] = "Kay, Lauder: A Fair Share Scheduler (CACM 1988); Slurm multi-factor priority"

    ranks: ClassVar[bool] = True

    by: str = field(
        default="user",
        metadata=param(
            "whose usage counts: 'user', 'queue', or 'queue,user' (queues first, users inside)", one_of=("user", "queue", "queue,user")
        ),
    )
    half_life: float = field(
        default=86400.0, metadata=param("seconds after which usage counts half; inf: never forget", above=0.0, unit="seconds")
    )
    preempt: bool = field(default=True, metadata={"help": "whether running gangs give way"})

    def order_moves(self) -> bool:
        return self.preempt

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = snapshot.jobs
        account = _Account.recalled(snapshot, self.half_life)
        usage, memory = account.charged(snapshot)
        rank = jobs.arrival / (snapshot.now + 1.0)  # within [0, 1]: settles order inside an account
        scale = 2.0
        for kind in reversed(self.by.split(",")):
            names = snapshot.users if kind == "user" else snapshot.queues
            codes = jobs.user if kind == "user" else jobs.queue
            weight = np.ones(len(names))
            np.maximum.at(weight, codes, jobs.weight if kind == "user" else 1.0)
            if kind == "queue":
                weight = np.array([_weight(snapshot, name) for name in names])
            share = np.array([usage.get(f"{kind}:{name}", 0.0) for name in names]) / weight
            position = np.empty(len(names))
            position[np.lexsort((np.arange(len(names)), np.round(share, _DIGITS)))] = np.arange(len(names))
            rank = position[codes] * scale + rank
            scale *= len(names) + 1.0
        return Plan.rank(rank, misfit=Misfit.SKIP, preempt=self.preempt, memory=memory)


@dataclass(frozen=True)
class _Account:
    """What was remembered: the usage of each user and queue at an instant, and what each started job had used by then."""

    half_life: float
    usage: Mapping[str, float]
    at: float
    rows: Ints
    spent: Floats  # GPU-seconds
    ran: Floats  # seconds

    @classmethod
    def recalled(cls, snapshot: Snapshot, half_life: float) -> _Account:
        """A service that was upgraded may bring charges by the names of rows, or without seconds, as they were once kept."""
        kept = snapshot.memory or {"usage": {}, "at": -math.inf, "charged": {}}
        if "charged" in kept:
            charged = sorted((int(row), spent) for row, spent in kept["charged"].items())
            rows, spent = np.array([row for row, _ in charged], dtype=np.int64), np.array([had for _, had in charged], dtype=np.float64)
        else:
            rows, spent = kept["rows"], kept["spent"]
        ran = kept.get("ran", np.full(len(rows), np.nan))
        return cls(half_life, kept["usage"], kept["at"], rows, spent, ran)

    def charged(self, snapshot: Snapshot) -> tuple[dict[str, float], dict[str, Any]]:
        """The usage of each account now, and what to remember.

        Between two questions a gang runs without a break, to the end of its run or to now: what it used then has faded by so much.
        """
        now, jobs, left = snapshot.now, snapshot.jobs, snapshot.left
        usage = {name: value * self._faded(now - self.at) for name, value in self.usage.items()}
        usage = {name: value for name, value in usage.items() if value > _LEAST}
        started = np.flatnonzero(~np.isnan(jobs.first_start))  # most waiting jobs have never run
        rows, spent, ran = jobs.rows[started], jobs.attained_gpu[started], jobs.attained[started]
        known = np.isin(rows, self.rows)
        new = known | (jobs.first_start[started] >= self.at)  # others were put on hold, or had ended, and are back
        self._charge(usage, snapshot, rows[new], jobs.user[started][new], jobs.queue[started][new], spent[new], ran[new],
                     jobs.waiting[started][new])  # fmt: skip
        self._charge(usage, snapshot, left.row, left.user, left.queue, left.attained_gpu, left.attained, now - left.since)
        return usage, {"usage": usage, "rows": rows, "spent": spent, "ran": ran, "at": now}

    def _charge(
        self, usage: dict[str, float], snapshot: Snapshot, rows: Ints, users: Ints, queues: Ints, spent: Floats, ran: Floats, ago: Floats
    ) -> None:
        """Charge what these jobs have used since they were last charged; their runs ended so many seconds ago."""
        fresh, seconds = spent - _known(self.rows, self.spent, rows), ran - _known(self.rows, self.ran, rows)
        at = np.flatnonzero(fresh)
        columns = (column[at].tolist() for column in (users, queues, fresh, np.nan_to_num(seconds), ago))
        for user, queue, more, length, since in zip(*columns):
            more *= self._faded(since) * self._faded_meanwhile(length)
            for account in (f"user:{snapshot.users[user]}", f"queue:{snapshot.queues[queue]}"):
                usage[account] = usage.get(account, 0.0) + more

    def _faded(self, seconds: float) -> float:
        """What is left of usage after so long."""
        return 1.0 if math.isinf(self.half_life) else float(0.5 ** (seconds / self.half_life))

    def _faded_meanwhile(self, seconds: float) -> float:
        """What is left at the end of a run of so long of what it used throughout."""
        halvings = math.log(2.0) * seconds / self.half_life
        return -math.expm1(-halvings) / halvings if halvings else 1.0


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
