"""A policy as a run has it: the same object on either clock, in a rollout and after a switch."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from gantline.core.errors import RefusedError, UsageError, near
from gantline.core.estimates import NEEDS
from gantline.core.plan import Misfit
from gantline.core.policy import OrderPolicy, Policy, changed
from gantline.engine.assembly.guard import Guard, asked, kind_of
from gantline.engine.regime import Regime

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
