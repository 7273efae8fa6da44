"""When to look next: one answer for every driver.

A driver says how time passes (it jumps, or it waits) and what has been acknowledged; when the policy is asked again is decided here, and
nowhere else. Something is due when a job arrives, when a gang is done or its estimate proves too low, when a lease, a run limit, a speed or
the answer itself ends (`valid_until`), when a gang has had its minimum run, when admission may let more in, and when something has
happened that could not be foreseen: a report, an input. Decisions then fall on that instant, on the next tick, or on the next round
boundary, as the regime counts time (the arithmetic of instants below, which compiled loops ask as well).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gantline.core.columns import Job
from gantline.core.jit import kernel_from_zero as kernel
from gantline.core.json_reader import Reader, json_number
from gantline.engine.advance import next_finish, next_movable, soonest
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount


class Agenda:
    """The appointments of one run."""

    def __init__(self, engine: Engine, step_all: bool = False, late: bool = False) -> None:
        self.engine, self.state = engine, engine.state
        self.step_all = step_all  # visit every round even if nothing can change (the check of skipping)
        self.late = late  # plans are committed to a later state, which may have room that was not foreseen: no round is skipped
        self._touched = math.inf  # since when something has happened that the policy has not been asked about
        self._since = 0.0  # when the last answer was committed: appointments count from there, whatever has been received since
        self._first = True

    def touch(self) -> None:
        """An unscheduled event has just happened."""
        self._touched = min(self._touched, self.state.now)

    @property
    def touched(self) -> bool:
        """Whether something has happened that the policy has not been asked about."""
        return self._touched < math.inf

    def looked(self) -> None:
        """The policy is asked now: all that has happened is known."""
        self._touched, self._first = math.inf, False

    def answered(self) -> None:
        """The answer, if any was asked for, has been committed."""
        self._since = self.state.now

    def to_json(self) -> dict[str, Any]:
        """All appointments that are not in the tables, as plain JSON."""
        return {
            "touched": json_number(self._touched),
            "since": self._since,
            "first": self._first,
            "valid_until": None if self.engine.valid_until is None else json_number(self.engine.valid_until),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Restore the appointments of a saved agenda."""
        reader = Reader(saved, "agenda")
        self._touched, self._since = reader.number("touched", math.inf), reader.number("since", 0.0)
        self._first = bool(saved["first"])
        self.engine.valid_until = None if saved["valid_until"] is None else reader.number("valid_until", math.inf)

    def next_look(self, coming: float = math.inf) -> float:
        """The instant of the next decision; `coming` is the next thing that only the driver can know. Infinity: never, left alone."""
        return self._instant(min(coming, self._touched, self._arrival(), self._soonest()))

    def _instant(self, due: float) -> float:
        """At once, at the next tick, or at the next round boundary."""
        regime, now = self.state.regime, self.state.now
        if due == math.inf:
            return due
        if regime.tick > 0.0 and regime.round <= 0.0:
            at = math.ceil(due / regime.tick - 1e-9) * regime.tick
            # what is due a rounding error after this very tick has not changed yet: it is seen at the next tick
            due = at if at > now or due <= now else (math.floor(now / regime.tick + 1e-9) + 1) * regime.tick
        # without jobs the policy is not asked: an answer to nothing would only count as a decision, and chance with it
        every = (self.step_all or self.late) and self.state.lists.number[RowCount.ACTIVE] > 0
        return next_instant(float(due), now, regime.round, not self._first, bool(every))

    def _arrival(self) -> float:
        """When the next of the jobs that are known already is submitted."""
        arrivals, following = self.state.tables.F[Job.ARRIVAL], self.state.lists.number[RowCount.NEXT]
        return float(arrivals[following]) if following < len(arrivals) else math.inf

    def _soonest(self) -> float:
        """When something happens by itself: a finish, the end of a lease, an order that moves, a round."""
        state, engine, regime, now = self.state, self.engine, self.state.regime, self._since
        wake = engine.next_finish
        if wake != wake:
            wake = next_finish(state.tables.F, state.tables.I, state.lists)
        speeds_until = engine.grants.speeds_until
        if speeds_until > now:
            wake = min(wake, speeds_until)
        if state.tables.windows:
            wake = min(wake, engine.windows.next_change(now))
        if not engine.order_only:
            wake = min(wake, max(self._leases_end(), now))
        if state.lists.number[RowCount.WAITING] or (engine.asks_always and state.lists.number[RowCount.ACTIVE]):
            wake = min(wake, self._answer_ends())
            if engine.preemption_grace.applies or engine.preemption_grace.rows:
                wake = min(wake, engine.preemption_grace.next_end(now))
            if state.min_run > 0.0:
                wake = min(wake, next_movable(state.tables.F, state.lists, now, state.min_run))
        if (
            state.lists.number[RowCount.HELD] < state.lists.number[RowCount.NEXT]
            and regime.round > 0.0
            and state.lists.number[RowCount.ADMITTED] > 0
        ):
            wake = min(wake, now + regime.round)
        return wake

    def _answer_ends(self) -> float:
        """Until when the last plan holds although nothing happens; a policy that does not say is asked in the next round or quantum."""
        regime, until = self.state.regime, self.engine.valid_until
        if until is None and regime.round <= 0.0 and not len(self.state.rows):
            return math.inf
        return answer_ends(math.nan if until is None else float(until), self._since, regime.round, regime.quantum)

    def _leases_end(self) -> float:
        """The next end of a lease; a lease that is over but could not be taken is looked at again a little later."""
        now, regime, lists = self._since, self.state.regime, self.state.lists
        end = soonest(self.state.tables.F, lists.active, lists.number[RowCount.ACTIVE], Job.UNTIL)
        if end > now:
            return end
        until = self.state.tables.F[Job.UNTIL][self.state.rows]
        return float(np.where(until > now, until, now + (regime.round or regime.quantum)).min())


# The arithmetic of instants: on which one a decision falls, and when an order or an answer is looked at again.
#
# Every loop asks here, in Python (`engine.agenda`) and in compiled code (`drivers.six_steps`).


@kernel
def next_instant(due: float, now: float, length: float, looked: bool, every: bool) -> float:
    """When something that is due then is decided: at once, or with rounds of that `length` at the next boundary.

    `looked`: there was a decision before, so that the next one falls on a later boundary; `every`: on the very next, whatever is due.
    """
    if length <= 0.0:
        return max(due, now)
    number: float = max(0.0, np.ceil(due / length - 1e-9))
    if looked:
        following = np.floor(now / length + 1e-9) + 1.0
        number = following if every else max(number, following)
    return number * length


@kernel
def next_look(change: float, now: float, quantum: float) -> float:
    """When an order that moves by itself is looked at again: the first whole multiple of the quantum after now at which it has changed.

    Multiples of a fixed length, rather than so long after the last look, because then a look in between without a change has no effect.
    """
    if change == np.inf:
        return change
    number: float = max(np.ceil(change / quantum - 1e-9), np.floor(now / quantum + 1e-9) + 1.0)
    return number * quantum


@kernel
def answer_ends(until: float, now: float, length: float, quantum: float) -> float:
    """When an answer that holds `until` then is asked for again; NaN: it does not say, so in the next round or quantum."""
    if np.isnan(until):
        return now + length if length > 0.0 else next_look(now, now, quantum)
    if length <= 0.0 and until <= now:
        return next_look(now, now, quantum)
    return until
