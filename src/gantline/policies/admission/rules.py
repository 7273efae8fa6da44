"""Which jobs may enter now, and how much users and queues may hold.

* ``accept-all``: every job at once.
* ``load-limit:1.2``: in order, while the demand of those inside is at most 1.2 times the cluster's GPUs; the test comes before the
  job is added, so the limit is overshot by one job, exactly as in Blox (EuroSys 2024, section 3.1).
* ``quota:user=8``: every job enters, and no user's jobs hold more than 8 devices at once; likewise ``queue=N`` for queues that the
  run says nothing else of, and both (`admission.quotas` is the rule).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gantline.core.errors import NotFoundError, UsageError, near

RULES = {
    "accept-all": "every job enters at once",
    "load-limit": "load-limit:X lets jobs in, in order, while demand is at most X times the cluster's GPUs",
    "quota": "quota:user=N,queue=M bounds the devices that a user's or a queue's jobs hold at once",
}


@dataclass(frozen=True)
class AdmissionRule:
    """A rule the engine can apply; a finite `load_limit` alone is handled by the compiled loop."""

    name: str = "accept-all"
    load_limit: float = math.inf  # times the cluster's GPUs
    user_quota: float = math.inf  # GPUs
    queue_quota: float = math.inf

    def most_gpus(self, gpus: int) -> float:
        """How many GPUs may be asked for at once on a cluster of so many; where there is no limit, also on one without any."""
        return self.load_limit * gpus if math.isfinite(self.load_limit) else math.inf

    @property
    def has_quota(self) -> bool:
        return math.isfinite(self.user_quota) or math.isfinite(self.queue_quota)


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
            if f"{kind}_quota" in quotas:
                raise UsageError(f"the quota of '{kind}' is given twice", where="--admission", fix="keep one of them")
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
