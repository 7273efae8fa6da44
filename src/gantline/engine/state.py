"""The engine's state: the tables, who is active, the log, and the numbers that steer the kernels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.cluster_now import ClusterNow
from gantline.core.phases import Phase
from gantline.core.plan import Reservation
from gantline.core.snapshot import Jobs, Snapshot
from gantline.core.tables import KernelTables, Tables
from gantline.engine import settings as s
from gantline.engine.eviction import X_COUNT
from gantline.engine.log import Log
from gantline.engine.ranks import B_ACTIVE, B_COUNT, B_RUNNING, rebuild
from gantline.engine.regime import Regime
from gantline.performance.costs import Costs
from gantline.placement.rules import PlacementRule

if TYPE_CHECKING:
    from gantline.engine.grants import Grants


@dataclass
class State:
    """Everything the loop changes. One instance per run."""

    tables: Tables
    regime: Regime
    placement: PlacementRule
    costs: Costs = field(default_factory=Costs)
    min_run: float = 0.0
    seed: int = 0
    now: float = 0.0
    decision: int = 0
    memory: Any = None
    learned: Any = None  # what the performance model has learned so far
    reservations: tuple[Reservation, ...] = ()  # in force; their `job` is a row

    def __post_init__(self) -> None:
        rows = self.tables.F.shape[1]
        self.active: Ints = np.zeros(rows + 1, dtype=np.int64)
        self.running: Ints = np.zeros(rows + 1, dtype=np.int64)
        self.waiting: Ints = np.zeros(rows + 1, dtype=np.int64)
        self.hist: Ints = np.zeros(int(self.tables.I[c.SMALLEST].max(initial=0)) + 2, dtype=np.int64)
        self.B: Ints = np.zeros(B_COUNT, dtype=np.int64)
        self._kernel_tables: KernelTables | None = None
        self.grants: Grants | None = None  # set by the engine: who holds more than a gang of its own
        self.saves: dict[int, tuple[int, float]] = {}  # row -> (grant, time from which its saves are counted), see `checkpoints`
        self.withheld: dict[int, Phase] = {}  # rows that somebody has put on hold or cancelled
        self.log = Log()
        self.scratch: Ints = np.zeros((X_COUNT, self._width()), dtype=np.int64)
        self.out: Ints = np.zeros(4, dtype=np.int64)
        self.SI: Ints = np.zeros(s.SI_COUNT, dtype=np.int64)
        self.SF = np.zeros(s.SF_COUNT)
        regime = self.regime
        self.SI[s.S_RULE] = self.placement.rule
        self.SI[s.S_WHOLE] = int(self.placement.whole)
        self.SI[s.S_KEEP_EVICTIONS] = int(regime.keep_evictions)
        self.SI[s.S_BOUNDARY] = int(regime.finish_at_boundary)
        self.SI[s.S_SEED] = self.seed
        self.SF[s.S_START] = self.costs.start
        self.SF[s.S_RESUME] = self.costs.resume
        self.SF[s.S_MOVE] = self.costs.move
        self.SF[s.S_DOUBLING] = self.costs.doubling
        self.SF[s.S_RESIZE] = self.costs.resize
        self.SF[s.S_MIN_RUN] = self.min_run
        self.SF[s.S_CREDIT] = regime.round if regime.credit_round else 0.0

    def _width(self) -> int:
        """Columns of scratch space that a walk may need."""
        t = self.tables
        cpu_gangs = t.F.shape[1] if (t.options.I[c.O_GPUS] == 0).any() else 0
        return int(max(t.NI.shape[1], t.D.shape[1], len(t.cluster.types), len(self.hist), 16) + cpu_gangs + 1)

    def make_room(self) -> None:
        """The tables have grown: so do the lists over them, by doubling as they do."""
        rows, most = self.tables.F.shape[1], int(self.tables.I[c.SMALLEST].max(initial=0)) + 2
        if rows >= len(self.active):
            self.active, self.running, self.waiting = (_longer(each, rows + 1) for each in (self.active, self.running, self.waiting))
        if most > len(self.hist):
            self.hist = _longer(self.hist, 2 * most)
        if self._width() > self.scratch.shape[1]:
            self.scratch = np.zeros((X_COUNT, 2 * self._width()), dtype=np.int64)

    @property
    def rows(self) -> Ints:
        """Active rows in order of arrival."""
        return self.active[: self.B[B_ACTIVE]]

    @property
    def running_rows(self) -> Ints:
        """Rows that hold devices."""
        return self.running[: self.B[B_RUNNING]]

    def rebuild(self) -> None:
        """Bring the rank lists up to date after changes that did not come from a walk."""
        rebuild(self.tables.I, self.active, self.running, self.waiting, self.B, self.hist)

    def reserve(self, reservations: tuple[Reservation, ...], rows: Ints) -> None:
        """Keep a plan's reservations; positions become rows, because positions shift when jobs come and go."""
        self.reservations = tuple(r if r.job < 0 else replace(r, job=int(rows[r.job])) for r in reservations)

    def standing_reservations(self) -> tuple[Reservation, ...]:
        """Reservations that are not over and whose job is still there, with positions in the present snapshot."""
        if not self.reservations:
            return ()
        place = {row: k for k, row in enumerate(self.rows.tolist())}
        alive = [r for r in self.reservations if r.end > self.now and (r.job < 0 or r.job in place)]
        return tuple(r if r.job < 0 else replace(r, job=place[r.job]) for r in alive)

    def snapshot(self) -> Snapshot:
        """This instant, as a policy sees it."""
        tables = self.tables
        jobs = Jobs(tables.lent, self.active[: self.B[B_ACTIVE]], self.now)
        regime, promised = self.regime, self.standing_reservations()
        now = ClusterNow(tables.lent)
        return Snapshot(
            self.now, self.decision, self.seed, jobs, now, self.memory, regime.round, promised, regime.name, self.learned, tables.lent
        )

    def kernel_tables(self) -> KernelTables:
        """The tables in the order in which every kernel takes them."""
        t = self.tables
        known = self._kernel_tables
        if known is None or known[0] is not t.F or known[2] is not t.options.F or known[5] is not t.NI:
            known = self._kernel_tables = (t.F, t.I, t.options.F, t.options.I, t.NF, t.NI, t.D)
        return known


def _longer(column: Ints, length: int) -> Ints:
    return np.concatenate([column, np.zeros(length - len(column), dtype=column.dtype)])
