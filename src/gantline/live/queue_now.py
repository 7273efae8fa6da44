"""Where jobs stand in the queue, as the last decision left it: values that are read by any thread, without asking the one that decides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job, Node
from gantline.core.phases import PENDING
from gantline.core.reasons import Reason
from gantline.engine.engine import Engine
from gantline.engine.settings import Switch

_UNSEEN = (int(Reason.NONE), int(Reason.ARRIVED))


@dataclass(frozen=True, slots=True, eq=False)
class QueueNow:
    """Which jobs wait, in which order, and what is free."""

    version: int = 0  # another number: something has changed that a forecast depends on
    waiting: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # rows in the order of the last decision
    ids: Sequence[str] = ()  # by row
    ranked: bool = False  # the last decision was an order; else they stand as they were submitted
    free: Mapping[str, int] = field(default_factory=dict)  # devices by type that are free for any job
    devices: Mapping[str, int] = field(default_factory=dict)  # that there are

    def ahead(self, row: int) -> list[str] | None:
        """Ids of the jobs that wait ahead of the one of that row, in order; None: it does not wait."""
        place = np.flatnonzero(self.waiting == row)
        return [self.ids[other] for other in self.waiting[: place[0]].tolist()] if len(place) else None


def standing_of(engine: Engine, version: int) -> QueueNow:
    """The queue now, as a value that other threads may keep."""
    state, t = engine.state, engine.state.tables
    free, all_ = {}, {}
    for number, kind in enumerate(t.cluster.types):
        here = t.NI[Node.TYPE] == number
        free[kind], all_[kind] = int(t.NI[Node.FREE, here].sum()), int(t.NI[Node.GPUS, here].sum())
    return QueueNow(version, state.waiting_rows.copy(), t.ids, engine.ranks, free, all_)


def reason_of(engine: Engine, row: int) -> int:
    """Why a row waits. A policy's walk may end before it reaches a row; the reason of such a row is known all the same."""
    state, t = engine.state, engine.state.tables
    code = int(t.I[Job.REASON, row])
    if code not in _UNSEEN or int(t.I[Job.PHASE, row]) != PENDING or not engine.decided_at >= float(t.F[Job.SINCE, row]):
        return code
    if not engine.ranks or math.isinf(t.F[Job.KEY, row]):
        return int(Reason.DEFERRED)
    return int(Reason.PRIORITY if state.SI[Switch.PREEMPT] else Reason.RESOURCES)
