"""Bounds on a policy's turn: how long it may take on the clock, and where what it prints goes.

A policy that takes too long is interrupted (`gantline._alarm`); where that is not possible, the time is measured after the fact. Either
way the answer of a late policy does not count, and the engine keeps the last valid plan.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import TypeVar

from gantline._alarm import TimeOverError, with_alarm
from gantline.core.policy import Policy
from gantline.engine.lost_turns import OverBudgetError

Answer = TypeVar("Answer")
Guard = Callable[[Callable[[], Answer]], Answer]

DEFAULT_BUDGET = 60.0  # seconds, for policies that are not part of this package; how long ours take is known


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
        try:
            answer = with_alarm(call, seconds)
        except TimeOverError as over:
            raise _late(seconds, f"was interrupted after {seconds:.3g} s, all of").with_traceback(over.__traceback__) from None
        taken = time.perf_counter() - began
        if taken > seconds:
            raise _late(seconds, f"took {taken:.3g} s, {taken - seconds:.3g} s more than")
        return answer

    return guard


def _late(seconds: float, told: str) -> OverBudgetError:
    return OverBudgetError(f"the policy {told} its budget of {seconds:.3g} s")
