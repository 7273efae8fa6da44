"""A bound on the wall-clock time of one decision.

In the main thread an alarm interrupts a policy that takes too long; elsewhere, and inside compiled code that no alarm can interrupt,
the time is measured after the fact. Either way the answer of a late policy does not count, and the engine keeps the last valid plan.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from gantline.core.errors import GantlineError

Answer = TypeVar("Answer")


class OverBudgetError(GantlineError):
    """A decision took longer than it may."""


def within(seconds: float) -> Callable[[Callable[[], Answer]], Answer]:
    """A guard that calls a function and refuses its answer when it comes later than `seconds`."""

    def guard(call: Callable[[], Answer]) -> Answer:
        began = time.perf_counter()
        answer = _with_alarm(call, seconds) if threading.current_thread() is threading.main_thread() else call()
        taken = time.perf_counter() - began
        if taken > seconds:
            raise _late(seconds, f"took {taken:.3g} s, {taken - seconds:.3g} s more than")
        return answer

    return guard


def _with_alarm(call: Callable[[], Answer], seconds: float) -> Answer:
    def ring(signum: int, frame: object) -> None:
        raise _late(seconds, f"was interrupted after {seconds:.3g} s, all of")

    began = time.perf_counter()
    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return call()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if left:  # somebody else's alarm was set: it goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - began), 1e-3))


def _late(seconds: float, told: str) -> OverBudgetError:
    return OverBudgetError(f"the policy {told} its budget of {seconds:.3g} s")
