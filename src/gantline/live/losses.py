"""Which running jobs their losses end: what each has reported since it was last started, compared with its rule (`core.ending`)."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache

from gantline.core.ending import EndingRule, find_ending
from gantline.core.errors import UsageError

WIDEST = 10_000  # reports that are kept of a job at most


@lru_cache(maxsize=1000)
def rule_of(text: str) -> EndingRule:
    """The rule that a text means; one that would have a service keep too many reports is refused."""
    rule = find_ending(text)
    if rule.kind == "plateau" and rule.window > WIDEST:
        raise UsageError(f"a window of {rule.window} reports", where="--end-by", fix=f"a service keeps at most {WIDEST} reports of a job")
    return rule


class Losses:
    """The newest losses of every job that has a rule, from any thread.

    They begin anew with each start of a job: one that goes on from an older checkpoint reports again what it had reached before, and
    would seem not to get on. A change of its devices while it runs is no start.
    """

    def __init__(self) -> None:
        self._kept: dict[str, tuple[int, deque[float]]] = {}  # job -> the epoch of the newest one, and the losses
        self._lock = threading.Lock()

    def received(self, job: str, epoch: int, rule: EndingRule, loss: float, is_same_life: Callable[[int], bool]) -> bool:
        """A job has reported a loss; whether it goes on. `is_same_life` says whether an earlier epoch is one of the present incarnation."""
        if rule.kind == "never" or not math.isfinite(loss):
            return True
        with self._lock:
            last, losses = self._kept.get(job, (epoch, None))
            if losses is None or not (last == epoch or is_same_life(last)):
                losses = deque(maxlen=rule.window + 1)  # a plateau is counted from the report just before its window
            losses.append(loss)
            self._kept[job] = epoch, losses
            return not rule.ends(losses)

    def forget(self, job: str) -> None:
        """The job has ended."""
        with self._lock:
            self._kept.pop(job, None)
