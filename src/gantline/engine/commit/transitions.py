"""What happens to a gang when its place changes: it starts, starts again elsewhere, or goes on after a pause; and what that costs."""

from __future__ import annotations

import math

from gantline.core.columns import Job, Option
from gantline.core.reasons import Reason
from gantline.engine.gang import close_interval, open_interval, rest, set_due, start
from gantline.engine.holdings import Holding, Holdings
from gantline.engine.log import Interval
from gantline.engine.state import State
from gantline.models.model import Act


class Transitions:
    """Acts on one row at a time; what it held before has been given back already."""

    def __init__(self, state: State, holdings: Holdings) -> None:
        self.state, self.holdings = state, holdings
        self.acts: dict[int, Act] = {}  # what each row paid for
        self.turns: set[int] = set()  # rows that have their turn again in a rotation

    def start(self, row: int, target: Holding) -> None:
        """A row that waits takes its place and begins; it pays for a start or a resume."""
        state, t, log = self.state, self.state.tables, self.state.log
        self.acts[row] = Act.START if math.isnan(t.F[Job.FIRST_START, row]) else Act.RESUME
        self.holdings.take(row, target)
        log.reserve(8, t.D.shape[1] + 8)
        start(state.matrices, row, state.now, state.rules, log.columns)
        log_shared(self.state, row, target)
        if row in self.turns and self.acts[row] is Act.RESUME:
            self.acts[row] = Act.SWITCH
            t.F[Job.SINCE, row] = state.now + state.costs.scaled(state.costs.of_switch, len(target.devices))
            set_due(t.F, row)

    def start_elsewhere(self, row: int, old: Holding, target: Holding) -> None:
        """All its devices change at once: it saves, and starts again over there. A restart, but no preemption."""
        t, log = self.state.tables, self.state.log
        close_interval(t.I, row, self.state.now, int(_why(old, target)), log.columns)
        rest(t.F, t.I, row, self.state.now)
        self.start(row, target)
        t.F[Job.SINCE, row] = self.state.now + self._price(row, old, target)
        set_due(t.F, row)

    def go_on(self, row: int, old: Holding, target: Holding) -> None:
        """Some of its workers stay where they are: it saves, pauses and goes on. Nothing counts as a restart."""
        t, log = self.state.tables, self.state.log
        close_interval(t.I, row, self.state.now, int(_why(old, target)), log.columns)
        self.holdings.take(row, target)
        t.I[Job.EPOCH, row] += 1
        t.F[Job.SAFE, row] = t.F[Job.DONE, row]
        t.F[Job.SINCE, row] = self.state.now + self._price(row, old, target)
        set_due(t.F, row)
        log.reserve(8, t.D.shape[1] + 8)
        open_interval(t.I, t.D, row, self.state.now, log.columns)
        log_shared(self.state, row, target)

    def _price(self, row: int, old: Holding, new: Holding) -> float:
        """Seconds at rate zero: a change of size on one type is a resize, anything else a move."""
        OI = self.state.tables.options.I
        resized = len(old.devices) != len(new.devices) and OI[Option.TYPE, old.option] == OI[Option.TYPE, new.option]
        costs = self.state.costs
        self.acts[row] = Act.RESIZE if resized else Act.MOVE
        return costs.scaled(costs.resize if resized else costs.move, len(new.devices))


def log_shared(state: State, row: int, held: Holding) -> None:
    """Shared devices are in no chain that the kernels' log could follow: enter them here, in rank order."""
    log, at = state.log, int(state.tables.I[Job.INTERVAL, row])
    if held.shared and at >= 0:
        log.reserve(8, len(held.devices) + 8)
        log.LD[log.LN[1] : log.LN[1] + len(held.devices)] = held.devices
        log.LN[1] += len(held.devices)
        log.LI[Interval.COUNT, at] = len(held.devices)


def _why(old: Holding, new: Holding) -> Reason:
    return Reason.MOVED if len(old.devices) == len(new.devices) else Reason.RESIZED
