"""An executor on virtual time with machines that never fail but take time to stop, as real programs do.

A gang that trains saves its work and needs a while to leave. One that is ordered to stop while it is still starting receives the order
when it has started: a program looks for signals between its steps. Until it is gone no other gang gets its devices, which a cost charged
to the resumed job cannot express.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gantline.core.columns import Job
from gantline.core.tables import Tables
from gantline.engine.drivers.faults import Faults
from gantline.engine.drivers.faulty import FaultyExecutor
from gantline.engine.drivers.gang_life import GangLife
from gantline.engine.executor import News, Order, Verb
from gantline.engine.state import State


@dataclass(frozen=True)
class TrueWork:
    """The amount of work of each row, of rows that come later as well."""

    tables: Tables

    def __getitem__(self, row: int) -> float:
        return float(self.tables.F[Job.WORK, row])


Leave = Callable[[int, tuple[int, ...], float], float]  # of a row on these devices, from that instant on
Truth = Callable[[Order], Order]  # the same order with the start and the speed that there really are


@dataclass
class MeasuredExecutor(FaultyExecutor):
    """Starts take what the cost model says (orders carry it), stops what `leave` says.

    With a `truth` gangs do otherwise than orders expect. As live, the scheduler then goes on believing how much of its work a stopped gang
    has done.
    """

    faults: Faults = field(default_factory=lambda: Faults(heartbeat=math.inf))  # no message is lost, so none is repeated
    leave: Leave = lambda row, devices, now: 0.0
    truth: Truth | None = None
    running: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    """By row what runs already when it is made, in a rollout amid a run: its epoch, the work it has done, and since when it goes on."""
    _believed: dict[tuple[int, int], float] = field(default_factory=dict)  # work done, by row and epoch that was ordered to stop

    @classmethod
    def of(cls, state: State) -> MeasuredExecutor:
        """For a run with a performance model that gives the time jobs need to leave."""
        t = state.tables

        def leave(row: int, devices: tuple[int, ...], now: float) -> float:
            if t.performance is None or not devices:
                return 0.0
            kind = t.cluster.nodes[int(t.cluster.device_node[devices[0]])].type
            return float(t.performance.leave(t.ids[row], t.models[t.I[Job.MODEL, row]], kind, len(devices), now))

        def truth(order: Order) -> Order:
            job, model = t.ids[order.row], t.models[t.I[Job.MODEL, order.row]]
            kind = t.cluster.nodes[int(t.cluster.device_node[order.devices[0]])].type
            rate = t.performance.goes(job, model, kind, len(order.devices), order.rate)
            return replace(order, rate=rate, pause=t.performance.takes(job, order.pause))

        does_otherwise = t.performance is not None and t.performance.does_otherwise
        found = cls(TrueWork(t), leave=leave, truth=truth if does_otherwise else None)
        found._saved = {row: float(t.F[Job.SAFE, row]) for row in state.rows.tolist()}
        for row in state.running_rows.tolist():
            found.running[row] = int(t.I[Job.EPOCH, row]), float(t.F[Job.DONE, row]), float(t.F[Job.SINCE, row])
        return found

    def send(self, order: Order, now: float) -> None:
        if self.truth is not None and order.verb is Verb.STOP:
            self._believed[order.row, order.epoch] = order.done
        super().send(self.truth(order) if self.truth is not None and order.verb is Verb.START and order.devices else order, now)

    def _say(self, news: News, inc: GangLife, at: float | None = None, saved: float | None = None) -> None:
        believed = self._believed.get((inc.row, inc.epoch)) if news in (News.SAVED, News.STOPPED) else None
        super()._say(news, inc, at, saved if believed is None else believed)

    def _begin(self, order: Order) -> None:
        super()._begin(order)
        epoch, done, since = self.running.pop(order.row, (-1, 0.0, 0.0))
        if epoch == order.epoch:
            gang = self._alive[order.row]
            gang.base, gang.resumed, gang.runs_from, gang.pause = done, done, since, max(0.0, since - self._now)

    def _saving(self, inc: GangLife) -> float:
        return max(0.0, inc.up + inc.pause - self._now)

    def _leaving(self, inc: GangLife) -> float:
        return self.leave(inc.row, inc.devices, self._now)
