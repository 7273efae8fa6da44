"""The engine's state: the tables, the active rows, the log, and the numbers that steer the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.cluster_now import ClusterNow
from gantline.core.columns import ASKED_TOGETHER, Job, Option
from gantline.core.facts import NO_FACTS, Costs, Facts
from gantline.core.phases import PENDING, STOPPING, Phase
from gantline.core.plan import Reservation
from gantline.core.snapshot import NOBODY, Jobs, Left, Snapshot, joined, read_left, without
from gantline.core.tables import Matrices, Tables
from gantline.engine.lists import Lists, RowCount
from gantline.engine.log import Interval, Log
from gantline.engine.ranks import rebuild
from gantline.engine.regime import Regime
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.engine.walk.notes import SCRATCH_ROWS
from gantline.policies.placement.rules import PlacementRule, is_sensitive


@dataclass
class State:
    """Everything the loop changes. One instance per run."""

    tables: Tables
    regime: Regime
    placement: PlacementRule
    facts: Facts = NO_FACTS
    seed: int = 0
    now: float = 0.0
    decision: int = 0
    memory: Any = None
    learned: Any = None  # what the performance model has learned so far
    reservations: tuple[Reservation, ...] = ()  # in force; their `job` is a row

    def __post_init__(self) -> None:
        rows = self.tables.F.shape[1]
        sizes = int(self.tables.I[Job.SMALLEST].max(initial=0)) + 2
        active, running, waiting, number, demand = (
            np.zeros(n, dtype=np.int64) for n in (rows + 1, rows + 1, rows + 1, len(RowCount), sizes)
        )
        self.lists = Lists(active, running, waiting, number, demand)
        self._matrices: Matrices | None = None
        self.saves: dict[int, tuple[int, float]] = {}  # row -> (grant, time from which its saves are counted), see `runs`
        self.asked_saves: dict[int, int] = {}  # row -> how often it was asked to save and go on
        self.withheld: dict[int, Phase] = {}  # rows that are on hold or cancelled by request
        self.resized: set[int] = set()  # rows with a size changed on request: plans with another size are adjusted to it
        self.to_fit: set[int] = set()  # rows that are to change their size as soon as they can
        self.shown: Ints = np.zeros(0, dtype=np.int64)  # the active rows when the policy was asked for the plan in force
        self.gone = NOBODY  # what left since that question, before this state was made
        self.log = Log()
        self._without_devices = bool((self.tables.options.I[Option.GPUS, : len(self.tables.options)] == 0).any())  # some job may run so
        self.scratch: Ints = np.zeros((SCRATCH_ROWS, self._width()), dtype=np.int64)
        self.out: Ints = np.zeros(2, dtype=np.int64)  # gangs that a commit has started, and stopped
        self.SI: Ints = np.zeros(len(Switch), dtype=np.int64)
        self.SF = np.zeros(len(Amount))
        self.rules = EngineRules(self.SI, self.SF)
        regime = self.regime
        self.place_by(self.placement)
        self.SI[Switch.KEEP_EVICTIONS] = int(regime.keep_evictions)
        self.SI[Switch.BOUNDARY] = int(regime.finish_at_boundary)
        self.SI[Switch.LEAST_LOST] = int(self.facts.victims == "least-lost")
        self.SI[Switch.SEED] = self.seed
        self.SF[Amount.START] = self.costs.start
        self.SF[Amount.RESUME] = self.costs.resume
        self.SF[Amount.MOVE] = self.costs.move
        self.SF[Amount.DOUBLING] = self.costs.doubling
        self.SF[Amount.RESIZE] = self.costs.resize
        self.SF[Amount.MIN_RUN] = self.min_run
        self.SF[Amount.CREDIT] = regime.round if regime.credit_round else 0.0

    def place_by(self, rule: PlacementRule) -> None:
        """Gangs are placed by this rule from now on: the run's own, or the one that the plan in force names."""
        self.rule = rule
        self.judge_models(0)
        self.SI[Switch.RULE] = rule.code
        self.SI[Switch.WHOLE] = int(rule.whole)
        self.SI[Switch.MONOTONE] = int(rule.monotone)
        self.SI[Switch.ONE_NODE] = int(rule.one_node)
        self.SI[Switch.TOGETHER] = int(rule.together)

    def judge_models(self, first: int) -> None:
        """Which jobs, from this row on, the rule keeps together because of their models, where it looks at models."""
        limit = self.rule.skew_limit
        if limit is not None:
            t = self.tables
            codes, which = np.unique(t.I[Job.MODEL, first:], return_inverse=True)
            sensitive = np.array([is_sensitive(t.models[code], limit) for code in codes.tolist()], dtype=np.int64)
            own = t.I[Job.CONSOLIDATE, first:]
            own[:] = np.where(own == ASKED_TOGETHER, own, sensitive[which])

    def _width(self) -> int:
        """Columns of scratch space that a walk may need."""
        t = self.tables
        cpu_gangs = t.F.shape[1] if self._without_devices else 0
        return int(max(t.NI.shape[1], t.D.shape[1], 2 * len(t.cluster.types), len(self.lists.demand), 16) + cpu_gangs + 1)

    def make_room(self, row: int) -> None:
        """A row is new, or asks for other sizes: the lists over the tables grow by doubling as they do.

        Nothing here looks at the other rows: most of them have ended long ago, and a live service never stops adding to them.
        """
        rows, most = self.tables.F.shape[1], int(self.tables.I[Job.SMALLEST, row]) + 2
        self._without_devices = self._without_devices or most == 2
        lists = self.lists
        if rows >= len(lists.active):
            active, running, waiting = (_longer(each, rows + 1) for each in (lists.active, lists.running, lists.waiting))
            lists = lists._replace(active=active, running=running, waiting=waiting)
        if most > len(lists.demand):
            lists = lists._replace(demand=_longer(lists.demand, 2 * most))
        self.lists = lists
        if self._width() > self.scratch.shape[1]:
            self.scratch = np.zeros((SCRATCH_ROWS, 2 * self._width()), dtype=np.int64)

    @property
    def costs(self) -> Costs:
        """Seconds that starts, stops, moves and changes of size cost."""
        return self.facts.costs

    @property
    def min_run(self) -> float:
        """Seconds that a gang runs before it may be stopped."""
        return self.facts.min_run

    @property
    def rows(self) -> Ints:
        """Active rows in order of arrival."""
        return self.lists.active[: self.lists.number[RowCount.ACTIVE]]

    @property
    def running_rows(self) -> Ints:
        """Rows that hold devices."""
        return self.lists.running[: self.lists.number[RowCount.RUNNING]]

    @property
    def waiting_rows(self) -> Ints:
        """Rows that wait for devices."""
        return self.lists.waiting[: self.lists.number[RowCount.WAITING]]

    @property
    def all_arrived(self) -> bool:
        """Whether no job is still to be submitted."""
        return bool(self.lists.number[RowCount.NEXT] >= self.tables.count)

    def activate(self, rows: Ints) -> None:
        """These rows, in order of arrival, are the active ones."""
        self.lists.active[: len(rows)] = rows
        self.lists.number[RowCount.ACTIVE] = len(rows)
        self.shown = rows.copy()

    def rebuild(self) -> None:
        """Bring the rank lists up to date after changes that did not come from a walk."""
        rebuild(self.tables.I, self.lists)

    def reserve(self, reservations: tuple[Reservation, ...], rows: Ints) -> None:
        """Keep a plan's reservations; positions become rows, because positions shift when jobs come and go."""
        self.reservations = tuple(r if r.job < 0 else replace(r, job=int(rows[r.job])) for r in reservations)

    def standing_reservations(self, rows: Ints | None = None) -> tuple[Reservation, ...]:
        """Reservations that are not over and have a job that is still there, with positions in the present snapshot."""
        if not self.reservations:
            return ()
        place = {row: k for k, row in enumerate((self.rows if rows is None else rows).tolist())}
        alive = [r for r in self.reservations if r.end > self.now and (r.job < 0 or r.job in place)]
        return tuple(r if r.job < 0 else replace(r, job=place[r.job]) for r in alive)

    def movable(self, rows: Ints) -> Bools:
        """Which gangs may be stopped: not locked, not in flight, and past their minimum run (as `eviction.movable`)."""
        F, I = self.tables.F, self.tables.I
        phase = I[Job.PHASE][rows]
        able = ((phase == Phase.RUNNING) | (phase == Phase.STARTING)) & (I[Job.LOCKED][rows] == 0)
        return np.asarray(able & (self.now >= F[Job.LAST_START][rows] + self.min_run))

    def snapshot(self, rows: Ints | None = None) -> Snapshot:
        """This instant, as a policy sees it: all active rows, or these of them."""
        tables = self.tables
        jobs = Jobs(tables.lent, self.rows if rows is None else rows, self.now, self.learned)
        regime, promised = self.regime, self.standing_reservations(rows)
        now = ClusterNow(tables.lent, jobs.rows)
        facts = self.memory, regime.round, promised, regime.name, self.learned, self.facts
        return Snapshot(self.now, self.decision, self.seed, jobs, now, *facts, tables.lent, self.left)

    def left(self) -> Left:
        """The jobs that were active when the policy was asked for the plan in force, and have left since."""
        phase = self.tables.I[Job.PHASE][self.shown]
        fresh = read_left(self.tables, self.shown[(phase < PENDING) | (phase > STOPPING)])
        return joined(without(self.gone, self.rows), fresh)

    @property
    def matrices(self) -> Matrices:
        """The tables as kernels take them; others after the tables have grown."""
        t = self.tables
        known = self._matrices
        if known is None or known.F is not t.F or known.OF is not t.options.F or known.NI is not t.NI:
            known = self._matrices = Matrices(t.F, t.I, t.options.F, t.options.I, t.NF, t.NI, t.D)
        return known


def _longer(column: Ints, length: int) -> Ints:
    return np.concatenate([column, np.zeros(length - len(column), dtype=column.dtype)])


class BeforeWalk:
    """What a walk changes, as it is now, so that the walk can be undone: where a placement rule makes a gang wait that it has started."""

    def __init__(self, state: State) -> None:
        t, lists = state.tables, state.lists
        self.state, self.rows = state, state.rows.copy()
        self._columns = t.F[:, self.rows].copy(), t.I[:, self.rows].copy()
        self._places = t.NF.copy(), t.NI.copy(), t.D.copy()
        self._lists = tuple(each.copy() for each in (lists.running, lists.waiting, lists.demand, lists.number))
        self._written = state.log.LN.copy()
        open_ = t.I[Job.INTERVAL, state.running_rows]
        self._open = open_[open_ >= 0]

    def restore(self) -> None:
        """Everything is as it was."""
        t, lists, log = self.state.tables, self.state.lists, self.state.log
        t.F[:, self.rows], t.I[:, self.rows] = self._columns
        for now, then in zip((t.NF, t.NI, t.D, lists.running, lists.waiting, lists.demand, lists.number), (*self._places, *self._lists)):
            now[:] = then
        log.LN[:] = self._written
        log.LF[Interval.END, self._open], log.LI[Interval.REASON, self._open] = np.nan, 0
