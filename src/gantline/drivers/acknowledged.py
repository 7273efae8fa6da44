"""The loop against an executor that answers when it can: the one that live executors will use, run here on virtual time.

1. the next instant    2. reports    3. node changes    4. arrivals    5. decide, or commit what was decided    6. reconcile
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.phases import Phase
from gantline.core.plan import Plan
from gantline.engine import settings as s
from gantline.engine.advance import arrive
from gantline.engine.engine import Engine
from gantline.engine.executor import Executor
from gantline.engine.node_changes import return_node
from gantline.engine.ranks import B_NEXT
from gantline.engine.reconcile import Reconciler


@dataclass
class AsyncLoop:
    """Engine plus executor on one virtual clock."""

    engine: Engine
    executor: Executor
    latency: float = 0.0  # seconds from question to commit
    every: float = 60.0  # at the latest so long after the last decision there is another, while jobs wait
    node_changes: list[tuple[float, int, bool]] = field(default_factory=list)  # (time, node, up?)
    until: float = math.inf

    def __post_init__(self) -> None:
        self.state = self.engine.state
        self.state.SI[s.S_ASYNC] = 1
        self.reconciler = Reconciler(self.state, self.engine.grants, self.executor)
        self._decided: tuple[float, Plan, Ints] | None = None
        self._stale = True
        self._next_decision = math.inf
        self.node_changes.sort()

    def run(self) -> None:
        """Run until every job has ended or nothing more can happen."""
        state, t = self.state, self.state.tables
        rows = t.F.shape[1]
        while True:
            due = self._next_instant(rows)
            if due == math.inf or due > self.until:
                break
            state.now = max(state.now, due)
            for report in self.executor.receive(state.now):
                self._stale |= self.reconciler.absorb(report)
            self._change_nodes()
            arrive(t.F, t.I, state.active, state.waiting, state.B, state.hist, state.now, math.inf)
            self._stale |= bool(state.B[6])
            state.rebuild()
            self._decide_or_commit()
            self.reconciler.step()
            if state.B[B_NEXT] >= rows and not len(state.rows):
                break

    def _next_instant(self, rows: int) -> float:
        state = self.state
        due = min(self.executor.next_time(), self.reconciler.next_time(), self._next_decision)
        if state.B[B_NEXT] < rows:
            due = min(due, float(state.tables.F[c.ARRIVAL, state.B[B_NEXT]]))
        if self.node_changes:
            due = min(due, self.node_changes[0][0])
        if self._decided is not None:
            due = min(due, self._decided[0])
        return due

    def _change_nodes(self) -> None:
        while self.node_changes and self.node_changes[0][0] <= self.state.now:
            _, node, up = self.node_changes.pop(0)
            was_up = self.state.tables.NI[c.N_UP, node] == 1
            if up and not was_up:
                return_node(self.state, node)
            elif not up and was_up:
                self.reconciler.node_lost(node)
            self._stale = True

    def _decide_or_commit(self) -> None:
        """Ask when something changed; commit when the answer is there, against the state as it is by then."""
        state, engine = self.state, self.engine
        if self._decided is None and (self._stale or state.now >= self._next_decision):
            self._stale = False
            self._next_decision = math.inf
            plan = engine.decide()
            if plan is not None:
                self._decided = (state.now + self.latency, plan, state.rows.copy())
        if self._decided is not None and self._decided[0] <= state.now:
            _, plan, asked = self._decided
            self._decided = None
            engine.commit_late(plan, asked)
            waits = bool((state.tables.I[c.PHASE][state.rows] == Phase.PENDING).any())
            if waits:
                self._next_decision = state.now + self.every
