"""Bounds on a policy's turn: how long it may take on the clock, and where what it prints goes.

A policy that takes too long is interrupted (`gantline._alarm`); where that is not possible, the time is measured after the fact. Either
way the answer of a late policy does not count, and the engine keeps the last valid plan.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any, TypeVar

from gantline._alarm import Bell, TimeOverError, clock, may_end, with_alarm
from gantline.core.errors import GantlineError, UsageError
from gantline.core.policy import Policy
from gantline.engine.policy_failures import OverBudgetError, describe_error

Answer = TypeVar("Answer")
Guard = Callable[[Callable[[], Answer]], Answer]

_OURS = 30.0  # seconds; compiling a kernel, say, takes less between two readings of the clock
DEFAULT_BUDGET = 60.0  # seconds, for policies that are not part of this package; how long ours take is known


def guard_of(policy: Policy, budget: float | None) -> Guard[Answer] | None:
    """What bounds the turns of a policy; None: nothing, because it is ours and no bound was asked for."""
    if kind_of(policy).__module__.startswith("gantline."):
        return within(budget) if budget is not None and budget < float("inf") else None
    return _Apart(within(DEFAULT_BUDGET if budget is None else budget))


def kind_of(policy: Policy) -> type:
    """The class of a policy; one under observation is what it holds."""
    return type(policy.observed)


def _name(policy: Policy) -> str:
    return f"policy '{kind_of(policy).__name__}'"


def asked(policy: Policy, guard: Guard[Any] | None, call: Callable[[], Answer]) -> Answer:
    """Call a policy outside of its turns, with the same bounds. There is no turn to lose, so an error ends the run, with its line."""
    if guard is None:
        return call()
    try:
        return guard(call)  # type: ignore[no-any-return]
    except BaseException as error:
        known = isinstance(error, GantlineError) and not isinstance(error, OverBudgetError)
        if known or isinstance(error, KeyboardInterrupt):
            raise
        raise UsageError(describe_error(policy, error), where=_name(policy)) from error


class _Apart:
    """A guard, with what is printed inside going to stderr: stdout is for results."""

    def __init__(self, guard: _Within) -> None:
        self._guard = guard

    def __call__(self, call: Callable[[], Answer]) -> Answer:
        with redirect_stdout(sys.stderr):
            return self._guard(call)

    @contextmanager
    def series(self) -> Iterator[Guard[Any]]:
        """A guard for many calls in a row."""
        with redirect_stdout(sys.stderr), self._guard.series() as guard:
            yield guard


class _Within:
    """A guard that calls a function and refuses its answer when it comes later than `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __call__(self, call: Callable[[], Answer]) -> Answer:
        if self._seconds == float("inf"):
            return call()
        began = clock()
        try:
            answer = with_alarm(call, self._seconds)
        except TimeOverError as over:
            raise self._interrupted().with_traceback(over.__traceback__) from None
        self._refuse_late(clock() - began)
        return answer

    @contextmanager
    def series(self) -> Iterator[Guard[Any]]:
        """A guard for many calls in a row, with one alarm for all; with one for each where what we do ourselves could be taken for them."""
        if self._seconds == float("inf") or (may_end() and self._seconds < _OURS):
            yield self
            return
        with Bell(self._seconds) as bell:

            def guard(call: Callable[[], Any]) -> Any:
                began = bell.began = clock()
                try:
                    answer = call()
                except TimeOverError as over:
                    raise self._interrupted().with_traceback(over.__traceback__) from None
                finally:
                    bell.began = math.inf
                if not bell.rings:
                    self._refuse_late(clock() - began)
                return answer

            yield guard

    def _interrupted(self) -> OverBudgetError:
        return _late(self._seconds, f"was interrupted after {self._seconds:.3g} s, all of")

    def _refuse_late(self, taken: float) -> None:
        if taken > self._seconds:
            raise _late(self._seconds, f"took {taken:.3g} s, {taken - self._seconds:.3g} s more than")


def within(seconds: float) -> _Within:
    """A guard of that many seconds."""
    return _Within(seconds)


def _late(seconds: float, how: str) -> OverBudgetError:
    return OverBudgetError(f"the policy {how} its budget of {seconds:.3g} s")
