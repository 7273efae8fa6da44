"""Bounds on a policy's turn: how long it may take on the clock, and where what it prints goes.

In the main thread an alarm interrupts a policy that takes too long, again and again, and in a way that `except Exception` does not stop.
Elsewhere, and inside compiled code that no alarm can interrupt, the time is measured after the fact; a process that has said that it may
be ended (`may_be_ended`, as the command line and the workers of a sweep do) is ended then. Either way the answer of a late policy does not
count, and the engine keeps the last valid plan.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import IO, TypeVar

from gantline.core.policy import Policy
from gantline.engine.lost_turns import OverBudgetError

Answer = TypeVar("Answer")
Guard = Callable[[Callable[[], Answer]], Answer]

DEFAULT_BUDGET = 60.0  # seconds, for policies that are not part of this package; how long ours take is known
_AGAIN = 0.1  # the alarm rings on, should the policy have caught it
_GRACE = 5.0  # seconds that an alarm has to get through before the process is ended
_epitaph: IO[bytes] | None = None


class _TurnOverError(BaseException):
    """Raised inside the policy; no Exception, so that it is not taken for one of the policy's own."""


def may_be_ended(epitaph: IO[bytes] | None) -> None:
    """Let a decision that nothing can interrupt end this process; where it was goes to the file. None: not any more."""
    global _epitaph
    _epitaph = epitaph


def guard_of(policy: Policy, budget: float | None) -> Guard[Answer] | None:
    """What bounds the turns of a policy; None: nothing, because it is ours and nobody asked for it."""
    ours = type(getattr(policy, "inner", policy)).__module__.startswith("gantline.")  # one under observation is what it holds
    if ours:
        return within(budget) if budget is not None and budget < float("inf") else None
    return apart(within(DEFAULT_BUDGET if budget is None else budget))


def apart(guard: Guard[Answer]) -> Guard[Answer]:
    """The guard, with what is printed inside going to stderr: stdout is for results."""

    def call_apart(call: Callable[[], Answer]) -> Answer:
        with redirect_stdout(sys.stderr):
            return guard(call)

    return call_apart


def within(seconds: float) -> Guard[Answer]:
    """A guard that calls a function and refuses its answer when it comes later than `seconds`."""
    if seconds == float("inf"):
        return lambda call: call()

    def guard(call: Callable[[], Answer]) -> Answer:
        began = time.perf_counter()
        answer = _with_alarm(call, seconds) if threading.current_thread() is threading.main_thread() else call()
        taken = time.perf_counter() - began
        if taken > seconds:
            raise _late(seconds, f"took {taken:.3g} s, {taken - seconds:.3g} s more than")
        return answer

    return guard


def _with_alarm(call: Callable[[], Answer], seconds: float) -> Answer:
    inside = True

    def ring(signum: int, frame: object) -> None:
        if inside:
            raise _TurnOverError

    began = time.perf_counter()
    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    if _epitaph is not None:
        faulthandler.dump_traceback_later(seconds + _GRACE, exit=True, file=_epitaph)
    try:
        try:
            return call()
        finally:
            inside = False
    except _TurnOverError as over:
        raise _late(seconds, f"was interrupted after {seconds:.3g} s, all of").with_traceback(over.__traceback__) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if _epitaph is not None:
            faulthandler.cancel_dump_traceback_later()
        if left:  # somebody else's alarm was set: it goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - began), 1e-3))


def _late(seconds: float, told: str) -> OverBudgetError:
    return OverBudgetError(f"the policy {told} its budget of {seconds:.3g} s")
