"""Bounds on a policy's turn: how long it may take on the clock, and where what it prints goes.

A policy that takes too long is interrupted (`gantline._alarm`); where that is not possible, the time is measured after the fact. Either
way the answer of a late policy does not count, and the engine keeps the last valid plan.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

from gantline._alarm import Bell, TimeOverError, clock, may_end, with_alarm, with_alarm_anywhere
from gantline.core.cluster import Cluster
from gantline.core.errors import GantlineError, RefusedError, UsageError, near
from gantline.core.facts import NO_FACTS, Facts
from gantline.core.plan import Misfit
from gantline.core.policy import NEEDS, OrderPolicy, Policy, changed
from gantline.engine.policy_failures import OverBudgetError, describe_error
from gantline.engine.regime import Regime
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest, LatePlacementError

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


# --- placement rules of users -------------------------------------------------------------------------------------------


def bounded_rule(rule: DeviceRule, name: str, budget: float | None) -> DeviceRule:
    """The rule with the bound that policies of users have; how long ours take is known."""
    if type(rule).__module__.startswith("gantline."):
        return rule
    return (WaitingBoundedRule if rule.waits else BoundedRule)(rule, name, DEFAULT_BUDGET if budget is None else budget)


@dataclass(frozen=True)
class BoundedRule(DeviceRule):
    """Asks another rule, which has so many seconds for each answer; what it prints goes to stderr."""

    rule: DeviceRule
    name: str
    seconds: float

    def choose(self, gang: GangRequest, free: FreeDevices) -> Sequence[int] | None:
        return self._within(lambda: self.rule.choose(gang, free), f"placement '{self.name}', job '{gang.job}'")

    def turn(self, gang: GangRequest) -> Any:
        return self._within(lambda: self.rule.turn(gang), f"placement '{self.name}', job '{gang.job}'")

    def on(self, cluster: Cluster, facts: Facts = NO_FACTS) -> DeviceRule:
        found = self._within(lambda: self.rule.on(cluster, facts), f"placement '{self.name}'")
        return type(self)(found, self.name, self.seconds)

    def _within(self, call: Callable[[], Answer], where: str) -> Answer:
        try:
            with redirect_stdout(sys.stderr):
                return with_alarm_anywhere(call, self.seconds)
        except TimeOverError:
            what = f"was interrupted after {self.seconds:.3g} s without an answer"
            raise LatePlacementError(what, where=where, fix="let it answer sooner, or give --budget") from None


@dataclass(frozen=True)
class WaitingBoundedRule(BoundedRule):
    """The same for a rule that may make gangs wait."""

    waits: ClassVar[bool] = True


# --- the policy as a run has it, on either clock, in a rollout and after a switch ---------------------------------------
_STATED = ("name", "paper", "shares_devices", "names_devices", "keeps_reservations", "believes", "node_sizes", "usual_round", "promises")

#: what users may still say of an order, and what is so without a word
_NOT_ASKED = {
    "linear": "key() is read, and compiled as far as that is possible",
    "per_job": "key() is asked about all jobs, unless it can be compiled",
}


def settled(policy: Policy, regime: Regime, guard: Guard[Any] | None = None) -> Policy:
    """The policy as it behaves in this regime.

    Nothing else about a run is written into a policy: costs, prices and the like are in every snapshot. One that is bounded by a guard
    first states, within its budget, what a run must know of it before its first turn.
    """
    if guard is None:
        return _as_read(policy, regime)

    def meet() -> Policy:
        found = _as_read(policy, regime)
        _ = [getattr(found, name) for name in _STATED], found.only_starts(), found.order_moves()
        _check(found)
        return found

    return asked(policy, guard, meet)


def _as_read(policy: Policy, regime: Regime) -> Policy:
    """The policy as it behaves in this regime; a parameter that was set and says nothing there is refused."""
    for part in policy.members():
        _as_read(part, regime)
    found = policy.for_regime(regime.name)
    unread = (*regime.settles, *found.unread(regime.name))
    for name in changed(policy):
        if name in unread:
            why = (
                f"regime '{regime.name}' decides that itself"
                if name in regime.settles
                else "nothing reads it beside the others as they are"
            )
            what = f"parameter '{name}' of policy '{policy.name}' says nothing: {why}"
            raise RefusedError(what, where=f"--regime {regime.name}", fix=f"leave {name} out, or see docs/policies/{policy.name}.md")
    return found


def _check(policy: Policy) -> None:
    """Refuse what a policy states about itself where it cannot be meant."""
    where = f"policy '{kind_of(policy).__name__}'"
    for need in frozenset(policy.needs):
        if need not in NEEDS:
            raise UsageError(f"unknown need '{need}'", where=where, fix=near(str(need), NEEDS))
    if isinstance(policy, OrderPolicy):
        stated = (
            ("misfit", policy.misfit, (Misfit,), "a gantline.Misfit"),
            ("preempt", policy.preempt, (bool, int), "True or False"),
            ("by_key()", policy.by_key(), (bool, int), "True or False"),
            ("backfill_depth()", policy.backfill_depth(), (int, float), "a number"),
        )
        for what, value, kinds, right in stated:
            if not isinstance(value, kinds):
                raise UsageError(f"{what} is {value!r:.40}", where=where, fix=right)
        for what, why in _NOT_ASKED.items():
            if hasattr(policy, what) and what not in {item.name for item in fields(policy)}:
                fix = "leave it out; `gantline policy show` says what becomes of key()"
                raise UsageError(f"'{what}' is not asked for: {why}", where=where, fix=fix)
