"""Gangs that are not stopped for others yet: a minimum run, a grace, and turns.

Two gangs that stop each other while they start, or before they have saved anything, get nowhere. So a gang that was started runs for a
minimum; one that is still starting, or can save while it runs and has not, is spared for a grace, which is bounded, so that one that
never gets up or never saves does not keep its devices for ever. And an order that moves by itself (LAS: whatever runs falls behind) stops
gangs for others at whole multiples of a turn only; in between it starts whatever there is room for. Users' requests (cancel, hold,
requeue) are not delayed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.phases import STARTING
from gantline.core.plan import Ranking
from gantline.core.policy import OrderPolicy, Policy
from gantline.engine.runs import safe_work
from gantline.engine.state import State


@dataclass(frozen=True)
class StopRules:
    """For how long gangs are not stopped for others, in seconds; zero: not at all."""

    min_run: float = 0.0  # from its start; policies see it in every snapshot
    grace: float = 0.0  # from its start, while it is starting, or can save and has not
    turn: float = 0.0  # between two instants at which an order that moves by itself may stop gangs


LIVE_STOPS = StopRules(min_run=60.0, grace=120.0, turn=60.0)
"""Where real programs run, and where they are simulated as such (`--executor measured`)."""


class PreemptionGrace:
    """Locks gangs before a decision, unlocks them when they need it no more, and keeps an order that moves by itself to its turns."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.grace = self.turn = 0.0
        self.rows: set[int] = set()  # locked here
        self.unsaved: Callable[[int], bool] = self._unsaved_by_tables  # whether a gang can save while it runs and never has
        self._stops = self._moves = True  # whether the policy may stop gangs, and by an order that moves by itself

    def meet(self, policy: Policy) -> None:
        """Another policy decides from now on."""
        self._stops = not isinstance(policy, OrderPolicy) or bool(policy.preempt)
        self._moves = bool(policy.order_moves())

    @property
    def applies(self) -> bool:
        """Whether any gang could be spared."""
        return self._stops and (self.grace > 0.0 or self._in_turns)

    @property
    def _in_turns(self) -> bool:
        return self.turn > 0.0 and self._moves

    # --- a grace ----------------------------------------------------------------------------------------------------------
    def lock(self) -> None:
        """Lock gangs that the next decision must not stop."""
        rows, jobs = self.state.running_rows, self.state.tables.jobs
        spared = set(rows[self._needs(rows)].tolist())
        jobs.locked[list(self.rows - spared)] = 0
        fresh = [row for row in spared - self.rows if jobs.locked[row] == 0]
        jobs.locked[fresh] = 1
        self.rows = (self.rows & spared) | set(fresh)

    def _needs(self, rows: Ints) -> Bools:
        now, jobs = self.state.now, self.state.tables.jobs
        young = now < jobs.last_start[rows] + self.grace
        starting = (jobs.phase[rows] == STARTING) | (now < jobs.since[rows])
        unsaved = young & ~starting
        unsaved[unsaved] = [self.unsaved(row) for row in rows[unsaved].tolist()]
        return np.asarray(young & (starting | unsaved))

    def _unsaved_by_tables(self, row: int) -> bool:
        return 0.0 < self.state.tables.jobs.checkpoint[row] < math.inf and safe_work(self.state, row) <= 0.0

    # --- when to look -----------------------------------------------------------------------------------------------------
    def next_end(self, now: float) -> float:
        """When a gang that is kept running now may be stopped, although nothing happens."""
        turn, jobs = self.turn, self.state.tables.jobs
        found = (math.floor(now / turn + 1e-9) + 1) * turn if self._stops and self._in_turns else math.inf
        for row in self.rows:
            since = float(jobs.since[row])
            for end in (since, since + float(jobs.checkpoint[row]), float(jobs.last_start[row]) + self.grace):
                found = min(found, end if end > now else math.inf)
        return found

    # --- turns ------------------------------------------------------------------------------------------------------------
    def in_turn(self, ranking: Ranking) -> Ranking:
        """The order as it may act now: between two turns it stops no gang."""
        return ranking if not ranking.preempt or not self._in_turns or self._is_turn() else replace(ranking, preempt=False)

    def _is_turn(self) -> bool:
        """Whether a turn ends now, or has ended since the last round or tick."""
        now, step = self.state.now, self.state.regime.round or self.state.regime.tick
        return now - math.floor(now / self.turn + 1e-9) * self.turn <= max(1e-9 * max(1.0, now), step - 1e-9)
