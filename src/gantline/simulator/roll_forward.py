"""From one instant onwards, by the engine: what becomes of the jobs of a snapshot if they have a given amount of work.

The general form of `rollout`, for every policy and every run. The policy sees what it would see: its estimates, its memory, the clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job
from gantline.core.errors import RefusedError
from gantline.core.inputs import Input
from gantline.core.phases import HELD_BACK, Phase
from gantline.core.plan import Misfit, Plan
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.reasons import Reason, sentence
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.engine import host_resources
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.executors import MeasuredExecutor
from gantline.engine.drivers.futures import LEAST, RecordFutures, Rolled, runs_steadily
from gantline.engine.drivers.key_reading import read_key
from gantline.engine.drivers.record_loop import why_not_on_records
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.drivers.six_steps import take_order
from gantline.engine.drivers.stepping import Driver, Virtual
from gantline.engine.engine import Engine
from gantline.engine.gang import open_interval, set_due
from gantline.engine.lists import RowCount
from gantline.engine.log import Interval
from gantline.engine.plan_check import check_plan
from gantline.engine.state import State
from gantline.models.model import overrides
from gantline.policies.admission.rules import AdmissionRule
from gantline.simulator.figures import bill, energy_of
from gantline.traces.files.policies import GivenPlacement

ACCEPT_ALL = AdmissionRule()


AS_IT_IS = object()
"""The memory that the snapshot carries."""


class StartingPoint:
    """A snapshot with tables that hold nothing else, in which orders in flight are carried out and estimates are true."""

    def __init__(self, snapshot: Snapshot, anew: bool = False) -> None:
        """`anew`: no other row is to stand behind those of the snapshot."""
        self.snapshot, self.tables = private_tables(copied(snapshot) if anew else snapshot)
        rows, F, I = self.snapshot.jobs.rows, self.tables.F, self.tables.I
        F[Job.WORK, rows] = F[Job.ESTIMATE, rows]
        _settle_flights(I, rows)
        self.done: Floats = F[Job.DONE, rows] + F[Job.RATE, rows] * np.maximum(0.0, snapshot.now - F[Job.SINCE, rows])
        self.held: Bools = np.array([Phase(int(phase)).holds_devices for phase in I[Job.PHASE, rows]], dtype=bool)


class RollForward:
    """One instant that the engine rolls forward many times, each time from a copy of the same tables."""

    def __init__(
        self,
        instant: Snapshot | StartingPoint,
        policy: Policy,
        rules: RunRules,
        admission: AdmissionRule = ACCEPT_ALL,
        held: Sequence[int] = (),
        memory: object = AS_IT_IS,
    ) -> None:
        """`policy` is settled, see `RunRules.policy`; `held` are the positions of jobs that `admission` has not let in yet."""
        here = StartingPoint(instant, bool(held)) if isinstance(instant, Snapshot) else instant
        self.tables, self.done, self.held = here.tables, here.done, here.held
        self.instant = here.snapshot if memory is AS_IT_IS else replace(here.snapshot, memory=memory)
        self.rules, self.policy, self.guard = rules, policy, rules.guard(policy)
        self.admission, self.held_back = admission, self.instant.jobs.rows[list(held)]

    def roll(
        self,
        work: Floats | None = None,
        until: float = math.inf,
        inputs: Iterable[Input] = (),
        spending: bool = False,
        draw: int | None = None,
    ) -> Rolled:
        """What becomes of the jobs if their work is that (None: as estimated); `spending`: also what that costs.

        `draw`: the number of the draw that times and speeds are of, where the performance model has a spread; None: each is its mean.

        A policy that loses every turn is refused: its futures would show nothing about the jobs.
        """
        instant, tables, rows = self.instant, self.tables.copy(), self.instant.jobs.rows
        now, state = instant.now, state_on(tables, instant, self.rules)
        state.decision = instant.decision - 1
        F = tables.F
        drawn = None if draw is None or tables.performance is None else tables.performance.drawn(draw)
        if drawn is not None:
            tables.performance = drawn
        if work is not None:
            F[Job.WORK, rows] = work
        F[Job.WORK, rows] = np.maximum(F[Job.WORK, rows], self.done + LEAST)
        for row in rows[self.held].tolist():
            set_due(F, row)
        state.lists.number[RowCount.NEXT] = state.lists.number[RowCount.HELD] = len(tables.ids)
        self._hold_back(state)
        engine = self.rules.engine(state, self.policy, self.guard)
        events = tuple(sorted(inputs, key=lambda value: value.time))
        watched = rows if events else None  # jobs that come meanwhile may run on
        if drawn is not None:
            engine.grants.speeds.refresh(state.running_rows)
        run = Simulation(
            engine,
            self.admission,
            until=until,
            node_events=events,
            latency=self.rules.facts.latency,
            watched=watched,
            driver=_driver(engine),
        )
        if spending:
            self._open_intervals(state)
        run.agenda.answered()  # appointments count from here
        run.agenda.touch()
        run.run()
        if engine.turns.hopeless:
            text = f"policy '{type(self.policy).__name__}' decides nothing from here on: {engine.incidents[0].what}"
            raise RefusedError(text, where="rollout")
        log = state.log
        start = np.full(tables.F.shape[1], np.inf)
        np.minimum.at(start, log.LI[Interval.ROW, : log.intervals], log.LF[Interval.START, : log.intervals])
        finish = tables.F[Job.FINISH, rows]  # jobs that came meanwhile may have made the tables grow
        return Rolled(
            np.where(self.held, now, start[rows]),
            np.where(np.isnan(finish), np.inf, finish),
            engine.decisions,
            tuple(map(str, engine.incidents)),
            **(self._spent(state) if spending else {}),
        )

    def on_records(self, until: float, newcomers: Sequence[Floats]) -> RecordFutures | None:
        """The same futures on records, with these newcomers (see `drivers.futures`); None: only the engine can roll them forward."""
        tables, policy, rows = self.tables.copy(), self.policy, self.instant.jobs.rows
        tables.F[Job.WORK] = np.inf  # in some future every estimate may prove too low
        state, held = state_on(tables, self.instant, self.rules), len(self.held_back)
        engine = self.rules.engine(state, policy, self.guard)
        run = Simulation(engine, self.admission, until=until, latency=self.rules.facts.latency, driver=_driver(engine))
        if run.between_decisions() or engine.quotas.active or not isinstance(policy, OrderPolicy) or state.regime.ties_keep_order:
            return None
        last_wait = np.array_equal(rows[len(rows) - held :], self.held_back)
        if why_not_on_records(state, midway=True) or not (last_wait and runs_steadily(state, rows)):
            return None
        read = read_key(policy, state, self.guard)
        if read.key is None or (read.numbers is not None and any(each.size for each in newcomers)):
            return None
        take_order(state, policy)
        if read.numbers is not None:
            tables.F[Job.PRIORITY] = read.numbers
        return RecordFutures(state, rows, read.key, run.bounds, held, newcomers)

    def _hold_back(self, state: State) -> None:
        """Keep out the jobs that admission has not let in yet, in order of arrival."""
        rows = self.held_back
        if not len(rows):
            return
        if rows.tolist() != list(range(int(rows[0]), len(state.tables.ids))):
            what = "jobs that admission holds back are not the last that have come"
            raise RefusedError(what, where="rollout", fix="use accept-all")
        state.activate(np.setdiff1d(self.instant.jobs.rows, rows))
        state.tables.I[Job.PHASE, rows], state.tables.I[Job.REASON, rows] = HELD_BACK, int(Reason.LOAD_LIMIT)
        state.lists.number[RowCount.HELD] = rows[0]
        state.rebuild()

    def _open_intervals(self, state: State) -> None:
        """What is held at the instant is logged from there on; else the log begins with what starts later."""
        t, log = state.tables, state.log
        log.reserve(int(self.held.sum()) + 1, t.D.shape[1] + 1)
        for row in self.instant.jobs.rows[self.held].tolist():
            open_interval(t.I, t.D, row, self.instant.now, log.columns)

    def _spent(self, state: State) -> dict[str, float]:
        """Dollars and kilowatt-hours from the instant to the end, as far as prices and power are known."""
        facts, found = self.rules.facts, dict[str, float]()
        if facts.prices:
            found["dollars"] = bill(state.tables, state.log, facts.prices, {})
        if facts.grid.power:
            grid = replace(facts.grid, carbon=None, electricity=None)
            found["kwh"] = float(energy_of(state.tables, state.log, grid, state.now, self.instant.now)["kwh"])
        return found


def state_on(tables: Tables, instant: Snapshot, rules: RunRules) -> State:
    """The engine's state at that instant, over these tables."""
    state, rows = rules.state(tables, instant.now, instant.decision), instant.jobs.rows
    state.memory, state.learned, state.gone = instant.memory, instant.learned, instant.left
    state.activate(rows)
    state.reserve(instant.reservations, rows)
    state.rebuild()
    return state


def private_tables(snapshot: Snapshot) -> tuple[Snapshot, Tables]:
    """The instant and tables that hold nothing else; those of a run that goes on are read anew, without its log and its ended jobs."""
    tables = tables_behind(snapshot)
    if (tables.I[Job.INTERVAL] < 0).all():  # no job has run in them
        return snapshot, tables.copy()
    instant = copied(snapshot)
    return instant, tables_behind(instant)


def copied(snapshot: Snapshot) -> Snapshot:
    """The same instant over tables of its own; what no document holds, the model and the facts of the run, is the same."""
    return replace(decode_snapshot(encode_snapshot(snapshot), snapshot.performance), facts=snapshot.facts)


def _driver(engine: Engine) -> Driver:
    """Orders are true at once; where the performance model knows how long stops take, they take that."""
    if not overrides(engine.state.tables.performance, "leave"):
        return Virtual()
    found = Acknowledged(engine, MeasuredExecutor.of(engine.state))
    found.reconciler.silence = math.inf  # a gang that says nothing is well
    found.reconciler.catch_up()  # the executor takes over what runs before anything is decided
    return found


def _settle_flights(I: Ints, rows: Ints) -> None:
    """Orders in flight count as carried out."""
    phase = I[Job.PHASE, rows]
    phase[np.isin(phase, (int(Phase.STARTING), int(Phase.RESIZING)))] = int(Phase.RUNNING)
    phase[np.isin(phase, (int(Phase.CHECKPOINTING), int(Phase.STOPPING)))] = int(Phase.PENDING)
    I[Job.PHASE, rows] = phase


# --- what the engine would make of a plan -------------------------------------------------------------------------------


@dataclass(frozen=True)
class JobOutcome:
    """What happens to one job: ``starts``, ``stays``, ``moves``, ``resizes``, ``is stopped`` or ``waits``."""

    job: str
    act: str
    devices: tuple[int, ...]
    why: str = ""


def carry_out(snapshot: Snapshot, plan: Plan, placement: GivenPlacement | None = None) -> list[JobOutcome]:
    """Commit the plan on a copy of the snapshot's state, by another placement rule than the run's; the snapshot is left alone."""
    return carry_out_on(copied(snapshot), plan, placement)


def carry_out_on(copy: Snapshot, plan: Plan, placement: GivenPlacement | None = None) -> list[JobOutcome]:
    """Commit the plan on a snapshot that was decoded for this and is not used afterwards."""
    tables, rules = tables_behind(copy), RunRules.at(copy, placement)
    state = rules.state(tables, copy.now, copy.decision)
    rows = copy.jobs.rows
    state.activate(rows)
    tables.I[Job.REASON, rows] = int(Reason.NONE)
    state.rebuild()
    engine = rules.engine(state, Policy())
    check_plan(copy, plan)
    before = [copy.jobs.devices(place) for place in range(len(rows))]
    ran = copy.jobs.running.copy()
    if tables.windows:
        engine.windows.settle()
    engine.commit(plan)
    if engine.misplaced is not None:  # what would happen is not known
        raise engine.misplaced
    return [_outcome(engine, plan, place, int(row), before[place], bool(ran[place])) for place, row in enumerate(rows)]


def _outcome(engine: Engine, plan: Plan, place: int, row: int, before: tuple[int, ...], ran: bool) -> JobOutcome:
    tables = engine.state.tables
    name, held = tables.ids[row], engine.grants.devices(row)
    reason = Reason(int(tables.I[Job.REASON, row]))
    if not Phase(int(tables.I[Job.PHASE, row])).holds_devices:
        reason = _why_it_waits(engine, plan, place, row) if reason in (Reason.NONE, Reason.ARRIVED) else reason
        why = engine.quotas.words(row) if reason in (Reason.QUOTA, Reason.OVER_QUOTA) else sentence(reason)
        why = engine.windows.words(row) if reason == Reason.WINDOW else why
        why = host_resources.words(tables, row) if reason in host_resources.LACKING else why
        return JobOutcome(name, "is stopped" if ran else "waits", (), why)
    if not ran:
        return JobOutcome(name, "starts", held)
    if held == before:
        return JobOutcome(name, "stays", held)
    return JobOutcome(name, "moves" if len(held) == len(before) else "resizes", held)


def _why_it_waits(engine: Engine, plan: Plan, place: int, row: int) -> Reason:
    """The reason of a job that the engine did not even look at."""
    state, tables = engine.state, engine.state.tables
    ranking = plan.ranking
    if ranking is None or np.isinf(ranking.key[place]):
        return Reason.DEFERRED
    rows = state.rows
    ahead = (ranking.key < ranking.key[place]) | ((ranking.key == ranking.key[place]) & (rows < row))
    if ranking.misfit == Misfit.STOP and (tables.I[Job.PHASE, rows[ahead]] == Phase.PENDING).any():
        return Reason.BLOCKED
    return Reason.PRIORITY if ranking.preempt else Reason.RESOURCES
