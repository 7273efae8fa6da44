"""A policy as a run has it: the same object on either clock, in a rollout and after a switch."""

from __future__ import annotations

from types import NoneType
from typing import Any

from gantline.assembly.guard import Guard, asked, kind_of
from gantline.core.errors import UsageError, near
from gantline.core.estimates import NEEDS
from gantline.core.plan import Misfit
from gantline.core.policy import LinearKey, OrderPolicy, Policy
from gantline.engine.regime import Regime

_STATED = ("name", "paper", "shares_devices", "keeps_reservations", "believes", "node_sizes", "usual_round", "promises")


def settled(policy: Policy, regime: Regime, guard: Guard[Any] | None = None) -> Policy:
    """The policy as it behaves in this regime.

    Nothing else about a run is written into a policy: costs, prices and the like are in every snapshot. One that is bounded by a guard
    first states, within its budget, what a run must know of it before its first turn.
    """
    if guard is None:
        return policy.for_regime(regime.name)

    def meet() -> Policy:
        found = policy.for_regime(regime.name)
        _ = [getattr(found, name) for name in _STATED], found.only_starts(), found.order_moves()
        _check(found)
        return found

    return asked(policy, guard, meet)


def _check(policy: Policy) -> None:
    """Refuse what a policy states about itself where it cannot be meant."""
    where = f"policy '{kind_of(policy).__name__}'"
    for need in frozenset(policy.needs):
        if need not in NEEDS:
            raise UsageError(f"there is no need '{need}'", where=where, fix=near(str(need), NEEDS))
    if isinstance(policy, OrderPolicy):
        stated = (
            ("misfit", policy.misfit, (Misfit,), "a gantline.Misfit"),
            ("preempt", policy.preempt, (bool, int), "True or False"),
            ("per_job", policy.per_job, (bool, int), "True or False"),
            ("linear()", policy.linear(), (LinearKey, NoneType), "a gantline.LinearKey, or None"),
        )
        for what, value, kinds, right in stated:
            if not isinstance(value, kinds):
                raise UsageError(f"{what} is {value!r:.40}", where=where, fix=right)
