"""A policy as compiled loops take it: how it treats a gang that does not fit, and numbers of its key in place of the priorities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.tables import Tables
from gantline.engine.settings import Switch
from gantline.engine.state import State


def take_order(state: State, policy: Policy) -> None:
    """Whether the order stops gangs, and what may pass one that does not fit."""
    assert isinstance(policy, OrderPolicy)
    state.SI[Switch.PREEMPT] = int(policy.preempt or state.regime.strict)
    state.SI[Switch.MISFIT] = 1 if state.regime.strict else int(policy.misfit)


@contextmanager
def as_priorities(numbers: Floats | None, tables: Tables) -> Iterator[None]:
    """While a loop runs, the numbers of a key that was read replace the priorities; None: it needs none."""
    given = tables.F[Job.PRIORITY].copy()
    if numbers is not None:
        tables.F[Job.PRIORITY] = numbers
    try:
        yield
    finally:
        tables.F[Job.PRIORITY] = given
