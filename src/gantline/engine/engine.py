"""The engine: asks the policy, checks its plan, commits it gang by gang. It reads no clock and does no I/O.

A policy that raises, runs past its budget or returns an infeasible plan loses its turn: the last valid plan stands and the
incident is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gantline.core import columns as c
from gantline.core import memory as memories
from gantline.core.errors import GantlineError
from gantline.core.plan import Plan, Ranking
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.snapshot import Snapshot
from gantline.engine import settings as s
from gantline.engine.advance import rank_and_walk
from gantline.engine.assign import assign
from gantline.engine.grants import Grants
from gantline.engine.node_changes import drain_node
from gantline.engine.ranks import B_ACTIVE
from gantline.engine.state import State


@dataclass(frozen=True, slots=True)
class Incident:
    """A turn that a policy lost."""

    time: float
    decision: int
    what: str

    def __str__(self) -> str:
        return f"t={self.time:g}, decision {self.decision}: {self.what}"


class InfeasiblePlanError(GantlineError):
    """The plan asks for what cannot be."""


@dataclass
class Engine:
    """State plus policy. `guard` bounds a call of the policy (seconds live, counts in simulation)."""

    state: State
    policy: Policy
    guard: Callable[[Callable[[], Plan]], Plan] = lambda call: call()
    recorder: Callable[[Snapshot, Plan], None] | None = None
    incidents: list[Incident] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.grants = Grants(self.state)
        self.decisions = 0
        self.started = 0
        self.stopped = 0
        self.waiting = 0
        self.refused = 0
        self._last_order: list[int] = []
        self.valid_until: float | None = None
        #: a policy that is only an order need not be asked while nobody waits
        self.order_only = isinstance(self.policy, OrderPolicy)

    def decide(self) -> Plan | None:
        """One question to the policy; None: it lost its turn."""
        state = self.state
        state.decision += 1
        self.decisions += 1
        snapshot = state.snapshot()
        try:
            plan = self.guard(lambda: self.policy.decide(snapshot))
            self.check(snapshot, plan)
        except GantlineError as error:
            self._lost(str(error))
            return None
        except Exception as error:
            self._lost(f"policy raised {type(error).__name__}: {error}")
            return None
        if self.recorder is not None:
            self.recorder(snapshot, plan)
        return plan

    def _lost(self, what: str) -> None:
        self.incidents.append(Incident(self.state.now, self.state.decision, f"{what}; its turn is lost, the last valid plan stands"))
        self.valid_until = None

    def check(self, snapshot: Snapshot, plan: Plan) -> None:
        """Refuse plans that mean nothing, before anything is touched."""
        if not isinstance(plan, Plan):
            raise InfeasiblePlanError(f"the policy answered with a {type(plan).__name__}", fix="return a gantline Plan")
        n = len(snapshot.jobs)
        if plan.ranking is not None:
            key = plan.ranking.key
            if key.shape != (n,):
                raise InfeasiblePlanError(f"the ranking has shape {key.shape} for {n} jobs", fix="one key per job of the snapshot")
        if plan.assignments is not None:
            job = plan.assignments.job
            if len(job) and (job.min() < 0 or job.max() >= n):
                raise InfeasiblePlanError(f"an assignment names job {int(job.max())} of {n}", fix="use positions in snapshot.jobs")
            if not plan.assignments.has("share") and len(np.unique(job)) != len(job):
                raise InfeasiblePlanError("a job is assigned twice", fix="one assignment per job")
        if plan.memory is not None:
            memories.plain(plan.memory)

    def commit(self, plan: Plan, rows: Any = None) -> None:
        """Make the plan true, gang by gang; `rows` are those of the plan's snapshot (default: the active ones now)."""
        state = self.state
        state.memory = plan.memory
        state.reservations = plan.reservations
        self.valid_until = plan.valid_until
        if rows is None:
            rows = state.rows
        t, log, n = state.tables, state.log, int(state.B[B_ACTIVE])
        log.reserve(2 * t.D.shape[1] + n + 8, 4 * t.D.shape[1] + 8)
        state.SI[s.S_DECISION] = state.decision
        if plan.ranking is not None:
            self._walk(plan.ranking, rows)
        elif plan.assignments is not None:
            table = plan.assignments
            if table.simple and not self.grants:
                assign(
                    *state.kernel_tables(),
                    state.active,
                    n,
                    rows[table.job],
                    self.grants.option_rows(rows, table),
                    table.column("until"),
                    state.now,
                    state.SI,
                    state.SF,
                    log.LI,
                    log.LF,
                    log.LD,
                    log.LN,
                    state.scratch,
                    state.out,
                )
            else:
                self.grants.commit(rows, table)
            state.rebuild()
            self._count()
        for node in plan.release:
            drain_node(state, node)

    def _walk(self, ranking: Ranking, rows: Any) -> None:
        state, log = self.state, self.state.log
        strict = state.regime.strict
        key = self._keep_order(ranking.key, rows) if state.regime.ties_keep_order else ranking.key
        state.SI[s.S_PREEMPT] = int(ranking.preempt or strict)
        state.SI[s.S_MISFIT] = 1 if strict else int(ranking.misfit)
        soonest = rank_and_walk(
            *state.kernel_tables(),
            key,
            rows,
            state.running,
            state.waiting,
            state.B,
            state.hist,
            state.now,
            state.SI,
            state.SF,
            log.LI,
            log.LF,
            log.LD,
            log.LN,
            state.scratch,
            state.out,
        )
        if soonest != soonest:
            self._lost("the ranking has a key that is not a number (use +inf for 'not now')")
            return
        self._count()

    def _keep_order(self, key: Any, rows: Any) -> Any:
        """Ranks by a stable sort of the last order, newcomers behind."""
        place = {row: i for i, row in enumerate(self._last_order)}
        before = np.array([place.get(row, len(place) + i) for i, row in enumerate(rows.tolist())])
        by_key = np.lexsort((before, key))
        self._last_order = rows[by_key].tolist()
        ranks = np.empty(len(rows))
        ranks[by_key] = np.arange(len(rows))
        return np.where(np.isinf(key), key, ranks)

    def _count(self) -> None:
        started, stopped, waiting, refused = self.state.out.tolist()
        self.started += started
        self.stopped += stopped
        self.waiting = waiting
        self.refused = refused

    def leases_end(self) -> float:
        """The next end of a lease among those that run."""
        until = self.state.tables.F[c.UNTIL][self.state.rows]
        return float(until.min()) if len(until) else float("inf")
