"""The engine: asks the policy, checks its plan, commits it gang by gang. It reads no clock and does no I/O.

A policy that raises, runs past its budget or returns an infeasible plan loses its turn: the last valid plan stands and the
incident is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.errors import RefusedError
from gantline.core.inputs import Input, Use
from gantline.core.phases import Phase
from gantline.core.plan import Assignments, InCharge, Misfit, Plan
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.reasons import Reason
from gantline.core.snapshot import NOBODY, Snapshot
from gantline.engine import host_resources
from gantline.engine.commit.commit import NO_ROWS, commit_assignments
from gantline.engine.device_rules import DeviceRules, MovedGangs
from gantline.engine.gates.quotas import QuotaGate
from gantline.engine.gates.windows import WindowGate
from gantline.engine.grants import Grants
from gantline.engine.inputs import Inputs
from gantline.engine.job_requests import FutileRuns, within_bounds
from gantline.engine.node_changes import drain_node
from gantline.engine.plan_check import check_groups, check_plan, placed_apart, plan_for_those_there, write_reasons_of_apart
from gantline.engine.policy_failures import NEVER_IN_TIME, Incident, OverBudgetError, PolicyFailures, Refused, describe_error, turn_away
from gantline.engine.preemption_grace import PreemptionGrace
from gantline.engine.runs import discard_trials, note_trials
from gantline.engine.settings import Switch
from gantline.engine.state import State
from gantline.engine.walk.eviction import check_choice
from gantline.engine.walk.ranking import RankingCommit
from gantline.policies.placement.device_rule import LatePlacementError, PlacementError
from gantline.policies.placement.rules import PlacementRule, find_placement


@dataclass
class Engine:
    """State plus policy. `guard` bounds a call of the policy (seconds live, counts in simulation)."""

    state: State
    policy: Policy
    guard: Callable[[Callable[[], Plan]], Plan] | None = None
    recorder: Callable[[Snapshot, Plan], None] | None = None
    incidents: list[Incident] = field(default_factory=list)
    notices: list[Incident] = field(default_factory=list)  # notes to users in the policy's plans
    said_at_start: int = 0  # how many of them are about how the run was put together
    in_charge: list[InCharge] = field(default_factory=list)  # policies that made plans, one after the other, where one chooses
    refusals: list[Refused] = field(default_factory=list)
    turns: PolicyFailures = field(default_factory=PolicyFailures)
    find_policy: Callable[[Use], Policy] | None = None  # finds the policy of a given name
    find_rule: Callable[[str], PlacementRule] = find_placement  # finds the placement rule that a ranking names

    def __post_init__(self) -> None:
        self.grants = Grants(self.state)
        self.preemption_grace = PreemptionGrace(self.state)
        self.quotas = QuotaGate(self.state, self.grants)
        self.decisions = 0
        self.started = 0
        self.stopped = 0
        self.asked: Ints | None = None  # the rows that the last question was about, where they are not all active ones
        self._present: Ints = self.state.shown  # those that were active then
        self.decided_at = -math.inf  # when a plan was last committed
        self.ranks = False  # whether that plan was an order, which then includes the waiting rows
        self.valid_until: float | None = None
        self.next_finish = math.nan  # as the last walk left it; NaN: not known
        self._late_choices = 0  # of devices, one after the other
        self.misplaced: PlacementError | None = None  # the last choice of devices that could not be
        self._rules: dict[str, PlacementRule] = {}  # those that rankings have named
        self._ranked = RankingCommit(self.state, self.grants, self.quotas, self._settle)
        self._meet(self.policy)

    def _meet(self, policy: Policy) -> None:
        if self.state.SI[Switch.LEAST_LOST]:
            check_choice(self.state, policy)
        self.policy = policy
        self.order_only = isinstance(policy, OrderPolicy)
        self._only_starts = policy.only_starts()
        self.preemption_grace.meet(policy)

    def _use(self, value: Use) -> None:
        """Another policy decides from now on: it begins without memory, and is asked although nothing else has happened."""
        if self.find_policy is None:
            raise RefusedError("this engine cannot look up policies", where="use")
        self._meet(self.find_policy(value))
        self.state.memory, self.valid_until, self.turns.answers = None, None, 0
        self.turns.in_a_row = self.turns.late_in_a_row = 0

    @contextmanager
    def asked_often(self) -> Iterator[None]:
        """Prepares for many calls of the policy in a row: what bounds each is set up once for all, if possible."""
        guard, series = self.guard, getattr(self.guard, "series", None)
        with nullcontext(guard) if series is None else series() as bound:
            self.guard = bound
            try:
                yield
            finally:
                self.guard = guard

    @cached_property
    def inputs(self) -> Inputs:
        """What applies inputs; most simulations have none."""
        made = Inputs(self.state, self.grants, self.quotas)
        made.use = self._use
        return made

    @property
    def windows(self) -> WindowGate:
        """What keeps devices free for windows; ask only where there are any."""
        return self.inputs.windows

    @property
    def asks_always(self) -> bool:
        """Whether the policy is asked although no row waits; it may change what the running rows have."""
        return bool(self.state.to_fit) or self.quotas.exceeded or not (self._only_starts and (self.order_only or not self.grants))

    @property
    def moves(self) -> int:
        """Starts and stops so far."""
        return self.started + self.stopped

    def apply(self, value: Input) -> bool:
        """Apply an input from outside; there is no other entry. Returns whether a policy could see a difference."""
        return self.inputs.apply(value)

    @cached_property
    def futile(self) -> FutileRuns:
        """Runs that end before they have started."""
        return FutileRuns(self.state)

    def decide(self) -> Plan | None:
        """One question to the policy; None: it lost its turn."""
        state = self.state
        state.decision += 1
        self.decisions += 1
        if self.grants.minds_changes:
            self.stopped += self.grants.before_decision(self.futile.note)
            self.incidents += self.futile.report(self.inputs.requests)
        if state.tables.trials:
            discard_trials(state)
        if self.preemption_grace.grace > 0.0:
            self.preemption_grace.lock()
        if state.to_fit:
            self.inputs.requests.fit()
        self.asked = None
        if self.quotas.active and not self.policy.ranks:
            self.asked = self.quotas.shown().copy()
        if state.tables.windows:
            self.windows.lock()
        snapshot = state.snapshot(self.asked)
        self._present = snapshot.jobs.rows if self.asked is None else state.rows.copy()
        try:
            plan = self.policy.decide(snapshot) if self.guard is None else self.guard(lambda: self.policy.decide(snapshot))
            check_plan(snapshot, plan)
            if plan.assignments is not None:
                check_groups(snapshot, plan.assignments, state.regime)
            self._rule_of(plan)  # one that is not known costs the turn
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() too, and whatever else a policy may raise
            self._lost(describe_error(self.policy, error), late=isinstance(error, OverBudgetError))
            return None
        self.turns.answered()
        if self.recorder is not None:
            self.recorder(snapshot, plan)
        return plan

    def _lost(self, what: str, *, late: bool = False) -> None:
        if self.state.tables.windows:
            self.windows.unlock()
        self.incidents.append(Incident(self.state.now, self.state.decision, f"{what}; its turn is lost, the last valid plan stands"))
        self.turns.lose(self.incidents[-1], late)
        self.valid_until = None
        rows, jobs = self.state.rows, self.state.tables.jobs
        fresh = rows[jobs.reason[rows] == int(Reason.ARRIVED)]
        jobs.reason[fresh] = int(Reason.POLICY_FAILED)

    def commit(self, plan: Plan, rows: Any = None) -> None:
        """Make the plan true, gang by gang; `rows` are those of the plan's snapshot (default: the active ones now)."""
        state = self.state
        state.memory, state.shown, state.gone = plan.memory, self._present, NOBODY
        self.valid_until, self.decided_at, self.ranks = plan.valid_until, state.now, plan.ranking is not None
        self.notices += [Incident(state.now, state.decision, note) for note in plan.notes]
        if plan.in_charge is not None and (not self.in_charge or self.in_charge[-1].policy != plan.in_charge.policy):
            self.in_charge.append(plan.in_charge)
        if rows is None:
            rows = state.rows if self.asked is None else self.asked
        if plan.reservations or state.reservations:
            state.reserve(plan.reservations, rows)
        for node in plan.release:  # first, so that nothing new is placed there
            drain_node(state, node)
        if plan.refusals:
            rows = rows.copy()  # the active rows change under it
            refused, not_refused = turn_away(state, plan.refusals, rows)
            self.refusals += refused
            self.incidents += not_refused
        t, log, n = state.tables, state.log, len(state.rows)
        log.reserve(2 * t.D.shape[1] + n + 8, 4 * t.D.shape[1] + 8)
        bounded = self.quotas.active
        rule = self._rule_of(plan)
        if rule is not state.rule:
            state.place_by(rule)
        if plan.ranking is not None:
            ranking = self.preemption_grace.in_turn(plan.ranking)
            if self.asked is not None:  # a row that was not shown to the policy is not in its order
                t.jobs.key[state.rows] = np.inf
            walked = self._ranked.commit(ranking, rows, strict=state.regime.strict and ranking is plan.ranking)
            self.started, self.stopped = self.started + walked.started, self.stopped + walked.stopped
            self.next_finish = walked.next_finish
        elif plan.assignments is not None:
            table = plan.assignments
            if state.resized:
                table = within_bounds(state.tables, rows, table, state.resized)
            table, keeps = self.quotas.cut(rows, table) if bounded else (table, NO_ROWS)
            apart = None
            if not state.facts.collocates:
                table, apart = placed_apart(table)
            self._commit_assignments(rows, table, keeps)
            self._count()
            if bounded:
                self._keep_promises(rows[table.job])
            if apart is not None:
                write_reasons_of_apart(t, rows[apart])
            moved, waits = self._settle()
            if len(waits):
                what = f"placement '{state.rule.name}' makes gangs wait, which a plan that assigns does not follow"
                self.incidents.append(Incident(state.now, state.decision, what))
            if len(moved):
                self.grants.speeds.refresh(moved)
        elif bounded:  # nothing changes but what others are promised
            self._keep_promises(rows[:0])
        host_resources.name_shortages(t, state.rows)
        if bounded:
            self.quotas.write_reasons()
        if state.tables.windows:
            self.windows.unlock()
            self._fill_windows(plan)
        if rule is not state.placement:
            state.place_by(state.placement)
        if state.tables.trials:
            discard_trials(state)
        if plan.assignments is not None and plan.assignments.has("purpose"):
            note_trials(state)

    def _commit_assignments(self, rows: Ints, table: Assignments, keeps: Ints) -> None:
        """Make the assignments true; device memory that is lacking is reported with its amount, once for as long as it stays so."""
        before, self.grants.short_of_memory = self.grants.short_of_memory, {}

        commit_assignments(self.grants, rows, table, keeps=keeps)
        fresh = [what for row, what in self.grants.short_of_memory.items() if before.get(row) != what]
        self.incidents += [Incident(self.state.now, self.state.decision, what) for what in fresh]

    def _keep_promises(self, planned: Ints) -> None:
        started, stopped = self.quotas.keep_promises(planned)
        self.started, self.stopped = self.started + started, self.stopped + stopped

    def _rule_of(self, plan: Plan) -> PlacementRule:
        """By which rule the gangs of a plan are placed: the run's, unless its ranking names another."""
        own, name = self.state.placement, None if plan.ranking is None else plan.ranking.placement
        if name is None or name == own.name:
            return own
        if name not in self._rules:
            self._rules[name] = self.find_rule(name)
        return self._rules[name]

    def _fill_windows(self, plan: Plan) -> None:
        """What is reserved and idle is used as long as it can be, by rows in the order of the plan, else of arrival."""
        order = self.state.waiting_rows.copy() if plan.ranking is not None else self.state.rows.copy()
        if plan.ranking is not None:
            order = order[np.isfinite(self.state.tables.jobs.key[order])]
        for _ in self.windows.fill(order, strict=plan.ranking is not None and self.state.SI[Switch.MISFIT] == int(Misfit.STOP)):
            self._count()
        self.windows.write_reasons(order)
        self.next_finish = math.nan

    def commit_late(self, plan: Plan, asked: Ints) -> None:
        """Commit a plan that was made for the rows `asked`, some of which may be gone; it does not cover those that came meanwhile."""
        state = self.state
        if plan.ranking is not None:
            state.tables.jobs.key[state.rows] = np.inf
        there = np.isin(asked, state.rows)
        self.commit(plan_for_those_there(plan, there), asked[there])
        late = state.rows[~np.isin(state.rows, asked)]
        state.tables.jobs.reason[late[state.tables.jobs.phase[late] == Phase.PENDING]] = int(Reason.STALE)

    def _settle(self) -> MovedGangs:
        """Place gangs by a rule that picks single devices; one that was late twice in a row is not asked again."""
        rule, none = self.state.rule, self.state.rows[:0]
        if rule.picks and self._late_choices < NEVER_IN_TIME:
            try:
                settled = DeviceRules(self.grants, rule).settle_in()
                self._late_choices = 0
                return settled
            except PlacementError as error:
                self.misplaced = error
                self._late_choices = self._late_choices + 1 if isinstance(error, LatePlacementError) else 0
                then = ", and it is not asked again" if self._late_choices == NEVER_IN_TIME else ""
                what = f"{error}; the gangs of this decision keep the devices that counting gave them{then}"
                self.incidents.append(Incident(self.state.now, self.state.decision, what))
        return MovedGangs(none, none)

    def _count(self) -> None:
        self.started += int(self.state.out[0])
        self.stopped += int(self.state.out[1])
