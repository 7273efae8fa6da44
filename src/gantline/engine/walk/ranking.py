"""A ranking becomes true: one walk over the rows in its order, which is another one where quotas bind."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.plan import Misfit, Ranking
from gantline.core.reasons import Reason
from gantline.engine.advance import rank_and_walk
from gantline.engine.device_rules import MovedGangs
from gantline.engine.gates.quotas import QuotaGate
from gantline.engine.grants import Grants
from gantline.engine.settings import Switch
from gantline.engine.state import BeforeWalk, State


class Walked(NamedTuple):
    """What a walk has changed."""

    started: int
    stopped: int
    next_finish: float  # NaN: not known


class RankingCommit:
    """Commits rankings; it keeps the last order, for regimes that break ties by it."""

    def __init__(self, state: State, grants: Grants, quotas: QuotaGate, put: Callable[[], MovedGangs]) -> None:
        self.state, self.grants, self.quotas = state, grants, quotas
        self._put = put  # puts gangs on single devices
        self._last_order: Ints = np.zeros(0, dtype=np.int64)

    def commit(self, ranking: Ranking, rows: Ints, strict: bool) -> Walked:
        """Start and stop gangs in the order of the ranking, which has the keys of these rows; `strict`: whatever its rule for misfits."""
        state, log, speeds = self.state, self.state.log, self.grants.speeds
        dissolved = self.grants.dissolve() if state.tables.granted else 0
        ran = state.running_rows.copy() if speeds.about_gangs else state.running_rows
        key = self._keep_order(ranking.key, rows) if state.regime.ties_keep_order else ranking.key
        key = key if key.flags.writeable else key.copy()  # of the snapshot: the walk would be compiled once more for it
        state.SI[Switch.PREEMPT] = int(ranking.preempt or strict)
        state.SI[Switch.MISFIT] = int(Misfit.STOP if strict else ranking.misfit)
        undo = BeforeWalk(state) if state.rule.may_wait else None
        made_wait: Ints = rows[:0]
        while True:
            if state.SI[Switch.LEAST_LOST]:
                from gantline.engine.walk.eviction import order_victims  # few runs choose victims by loss

                order_victims(state, key, rows)
            if self.quotas.active:
                next_finish = self.quotas.walk(key, rows)
            else:
                next_finish = rank_and_walk(
                    state.matrices, state.lists, key, rows, state.now, state.rules, log.columns, state.scratch, state.out
                )
            moved, waits = self._put()
            if undo is None or not len(waits):
                break
            made_wait = np.concatenate([made_wait, waits])
            key = _without(key, rows, waits, strictly=state.SI[Switch.MISFIT] == int(Misfit.STOP))
            undo.restore()
        state.tables.I[Job.REASON, made_wait] = int(Reason.FRAGMENTED)
        if speeds.about_gangs:
            speeds.begun(ran)
            if len(moved):
                speeds.refresh(moved)
        known = not (speeds.about_gangs or len(moved) or self.grants.left)
        if self.grants.left:
            self.grants.refresh()
        if not self.quotas.active:  # else within each queue, by the walk
            name_blocked(state)
        return Walked(int(state.out[0]), dissolved + int(state.out[1]), next_finish if known else math.nan)

    def _keep_order(self, key: Floats, rows: Ints) -> Floats:
        """Ranks by a stable sort of the last order, new rows behind."""
        last, before = self._last_order, len(self._last_order) + np.arange(len(rows))
        if len(last):
            by_row = np.argsort(last)
            place = by_row[np.minimum(np.searchsorted(last, rows, sorter=by_row), len(last) - 1)]
            before = np.where(last[place] == rows, place, before)
        by_key = np.lexsort((before, key))
        self._last_order = rows[by_key]
        ranks = np.empty(len(rows))
        ranks[by_key] = np.arange(len(rows))
        return np.where(np.isinf(key), key, ranks)


def _without(key: Floats, rows: Ints, waits: Ints, strictly: bool) -> Floats:
    """The order without rows that are to wait; where none may pass another, without those behind the first of them too."""
    waiting = np.isin(rows, waits)
    if strictly:
        first = min(np.flatnonzero(waiting).tolist(), key=lambda at: (key[at], at))
        waiting |= (key > key[first]) | ((key == key[first]) & (np.arange(len(rows)) > first))
    return np.where(waiting, np.inf, key)


# Rows that wait only because the order is strict: all rows behind the first that does not fit, fitting or not.
#
# The walk ends at that first one and does not look at the others, so their reason is entered here.


def name_blocked(state: State) -> None:
    """After a walk: those behind the first that waits get this reason, except those that this walk itself has stopped or put off."""
    if state.SI[Switch.MISFIT] != int(Misfit.STOP):
        return
    F, I, rows = state.tables.F, state.tables.I, state.waiting_rows
    ranked = rows[F[Job.KEY][rows] < np.inf]
    behind = ranked[np.lexsort((ranked, F[Job.KEY][ranked]))][1:]
    stopped = (I[Job.REASON][behind] == int(Reason.PREEMPTED)) & (F[Job.SINCE][behind] == state.now)
    I[Job.REASON, behind[~stopped]] = int(Reason.BLOCKED)
