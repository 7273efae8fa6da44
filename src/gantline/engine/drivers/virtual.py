"""Virtual time: it jumps from look to look, orders are carried out at once, and gangs end when the tables say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from gantline.engine.advance import finish_due, next_finish
from gantline.engine.drivers.stepping import Stepping
from gantline.engine.lists import RowCount

if TYPE_CHECKING:
    from gantline.core.inputs import Input


class Virtual:
    """A driver without a state of its own."""

    gives_up: ClassVar[bool] = True

    def wait(self, loop: Stepping) -> float:
        return loop.agenda.next_look(loop.next_input())

    def elapse(self, loop: Stepping, until: float) -> None:
        loop.state.now = until

    def settle(self, loop: Stepping) -> bool:
        in_order = self._settle_in_order(loop) if loop.engine.grants.minds_changes else False
        return self._finish_due(loop) or in_order

    def take_in(self, loop: Stepping, value: Input) -> None:
        loop.engine.apply(value)

    def follow(self, loop: Stepping) -> None:
        """Nothing to do: it is carried out already."""

    def _settle_in_order(self, loop: Stepping) -> bool:
        """Speeds change at the instant at which a mate ends or a model says so, not at the end of the round."""
        state, grants, now, ended = loop.state, loop.engine.grants, loop.state.now, False
        while not state.regime.finish_at_boundary:
            due = min(next_finish(state.tables.F, state.tables.I, state.lists), grants.speeds_until)
            if due >= now:
                break
            state.now = due
            ended |= self._finish_due(loop)
            if grants.speeds_until <= due:
                grants.refresh()
        state.now = now
        return ended

    def _finish_due(self, loop: Stepping) -> bool:
        state, grants = loop.state, loop.engine.grants
        finish_due(state.matrices, state.lists, state.now, state.rules, state.log.columns)
        ended = int(state.lists.number[RowCount.FINISHED]) > 0
        if ended and grants.minds_changes:
            grants.forget_finished()
        return ended
