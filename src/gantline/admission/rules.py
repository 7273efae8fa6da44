"""Who may enter now. A rule sees the jobs kept out, oldest first, and those inside, and says whom to let in.

* ``accept-all``: everybody at once.
* ``load-limit:1.2``: in order, while the demand of those inside is at most 1.2 times the cluster's GPUs; the test comes before the
  job is added, so the limit is overshot by one job, exactly as in Blox (EuroSys 2024, section 3.1).
* ``quota:user=8``: in order per user, while the user's jobs inside ask for at most 8 GPUs; likewise ``queue=N``, and both. A job
  larger than its quota enters alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.tables import Tables

RULES = {
    "accept-all": "everybody enters at once",
    "load-limit": "load-limit:X lets jobs in, in order, while demand is at most X times the cluster's GPUs",
    "quota": "quota:user=N,queue=M bounds the GPUs that a user's or a queue's jobs ask for at once",
}


@dataclass(frozen=True)
class AdmissionRule:
    """A rule the engine can apply; a finite `load_limit` alone is handled by the compiled loop."""

    name: str = "accept-all"
    load_limit: float = math.inf  # times the cluster's GPUs
    user_quota: float = math.inf  # GPUs
    queue_quota: float = math.inf

    @property
    def has_quota(self) -> bool:
        return math.isfinite(self.user_quota) or math.isfinite(self.queue_quota)

    def select(self, tables: Tables, held: Ints, inside: Ints) -> list[int]:
        """Rows among `held` (oldest first) that may enter, given those inside."""
        I = tables.I
        gpus = I[c.GPUS]
        use = {
            "user": np.bincount(I[c.USER][inside], weights=gpus[inside], minlength=len(tables.users)),
            "queue": np.bincount(I[c.QUEUE][inside], weights=gpus[inside], minlength=len(tables.queues)),
        }
        quotas = {
            "user": np.full(len(tables.users), self.user_quota),
            "queue": np.array([tables.queue_tree[q].quota if q in tables.queue_tree else self.queue_quota for q in tables.queues]),
        }
        total = float(gpus[inside].sum())
        limit = self.load_limit * tables.cluster.gpus
        entering: list[int] = []
        shut: set[tuple[str, int]] = set()  # a user or queue whose head was kept out keeps its order
        for row in held.tolist():
            user, queue, need = int(I[c.USER, row]), int(I[c.QUEUE, row]), float(gpus[row])
            if total > limit:
                break
            if ("user", user) in shut or ("queue", queue) in shut:
                continue
            over = [
                (kind, code)
                for kind, code in (("user", user), ("queue", queue))
                if use[kind][code] > 0 and use[kind][code] + need > quotas[kind][code]
            ]
            if over:
                shut.update(over)
                continue
            entering.append(row)
            total += need
            use["user"][user] += need
            use["queue"][queue] += need
        return entering


def find_admission(text: str) -> AdmissionRule:
    """The rule that a name with its option means."""
    name, _, option = text.partition(":")
    if name == "accept-all" and not option:
        return AdmissionRule(text)
    if name == "load-limit":
        return AdmissionRule(text, load_limit=_number(option, "load-limit:1.2"))
    if name == "quota":
        quotas: dict[str, float] = {}
        for part in option.split(","):
            kind, _, amount = part.partition("=")
            if kind not in {"user", "queue"}:
                raise UsageError(f"'{part}' is not a quota", where="--admission", fix="write quota:user=8,queue=64")
            quotas[f"{kind}_quota"] = _number(amount, "quota:user=8")
        return AdmissionRule(text, **quotas)
    raise NotFoundError(f"no admission rule '{text}'", where="--admission", fix=near(name, RULES))


def _number(text: str, example: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise UsageError(f"'{text}' is not a number above zero", where="--admission", fix=f"write {example}")
    return value
