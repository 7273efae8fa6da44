"""How a policy is asked for its key at every decision of a compiled loop: by one snapshot, which is brought up to date each time.

A key hardly ever looks at other columns than at the last question, so the loop copies those by itself before it comes back to ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster_now import ClusterNow
from gantline.core.columns import MOVING, JobTable, TableColumn, gather
from gantline.core.jit import kernel
from gantline.core.policy import OrderPolicy
from gantline.core.tables import Matrices, sealed
from gantline.engine.drivers.key_reading import Within, time_said
from gantline.engine.lists import Lists, RowCount
from gantline.engine.state import State

_MOST = 64  # columns; there are fewer


class AskedColumns(NamedTuple):
    """What the loop copies for the next question: columns of the active jobs, one per line."""

    codes: Ints  # of the columns, see `core.columns.MOVING`
    used: Ints  # how many of the codes count
    rows: Ints
    floats: Floats
    ints: Ints  # the same memory


def room_for(rows: int) -> AskedColumns:
    """Room for columns of so many jobs; none is copied yet."""
    floats = np.zeros((_MOST, rows))
    codes, used, active = (np.zeros(size, dtype=np.int64) for size in (_MOST, 1, rows))
    return AskedColumns(codes, used, active, floats, floats.view(np.int64))


@kernel
def show(t: Matrices, lists: Lists, now: float, shown: AskedColumns) -> None:
    """Copy what the next question is about."""
    count = lists.number[RowCount.ACTIVE]
    for k in range(count):
        shown.rows[k] = lists.active[k]
    gather(t.F, t.I, lists.active[:count], now, shown.codes[: shown.used[0]], shown.floats, shown.ints)


class Questions:
    """The questions of one loop about the instants to which its state has come."""

    def __init__(self, state: State, policy: OrderPolicy, within: Within, shown: AskedColumns) -> None:
        self._state, self._within, self._shown = state, within, shown
        self._snapshot = state.snapshot()
        self._rows, self._floats, self._ints = sealed(shown.rows[:]), sealed(shown.floats[:]), sealed(shown.ints[:])
        self._count = -1  # jobs at the last question
        self._names: list[object] = []  # what jobs call the columns that the loop copies
        self._known: dict[object, Floats | Ints] = {}  # these columns
        says_until = type(policy).valid_until is not OrderPolicy.valid_until
        self._said = lambda: (policy.key(self._snapshot), time_said(policy.valid_until(self._snapshot)) if says_until else None)

    def ask(self) -> tuple[Floats, float] | None:
        """The keys in order of arrival, and when the order might change although nothing happens (NaN: it does not say).

        None: neither is one. Then the policy is asked for a whole plan, which reports its mistake.
        """
        state, snapshot, count = self._state, self._snapshot, int(self._state.lists.number[RowCount.ACTIVE])
        if count != self._count:
            self._resize(count)
        looked_at = snapshot.jobs.refresh(state.now, self._known)
        object.__setattr__(snapshot, "now", state.now)  # making another snapshot takes as long as asking
        object.__setattr__(snapshot, "decision", state.decision)
        object.__setattr__(snapshot, "cluster", ClusterNow(state.tables.lent, snapshot.jobs.rows))
        try:
            said, until = self._within(self._said)
            keys = np.asarray(said, dtype=np.float64)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None
        if len(looked_at) > len(self._known):
            self._copy(looked_at)
        return (keys, math.nan if until is None else until) if keys.shape == (count,) else None

    def _resize(self, count: int) -> None:
        """So many jobs are active."""
        self._count, self._snapshot.jobs.rows = count, self._rows[:count]
        lines = enumerate(zip(self._names, self._shown.codes.tolist()))
        self._known = {name: (self._floats if code >= 0 else self._ints)[line, :count] for line, (name, code) in lines}

    def _copy(self, looked_at: Iterable[object]) -> None:
        """From now on the loop copies these columns, as far as they have codes; some reasons are written when it has come back."""
        codes = {name: code for name in looked_at if name is not JobTable.reason and (code := _code(name)) is not None}
        if len(codes) > len(self._known):
            self._names, self._shown.codes[: len(codes)] = list(codes), list(codes.values())
            self._shown.used[0], self._count = len(codes), -1


def _code(name: object) -> int | None:
    """The code of a column as jobs call it; None: it is made of others."""
    if isinstance(name, TableColumn):
        return int(name.place) if name.kind is np.float64 else ~int(name.place)
    return MOVING + int(name[1].place) if isinstance(name, tuple) else None
