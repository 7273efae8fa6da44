"""Placement rules of users, bounded in time: a choice that takes too long is interrupted, and reported with the rule and the job."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from gantline._alarm import TimeOverError, with_alarm_anywhere
from gantline.core.cluster import Cluster
from gantline.core.facts import NO_FACTS, Facts
from gantline.engine.assembly.guard import DEFAULT_BUDGET
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest, LatePlacementError

Answer = TypeVar("Answer")


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
