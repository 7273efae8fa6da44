"""What a policy sees: one instant of the cluster, as columns.

`snapshot.jobs` lists the active jobs (admitted, not ended) in order of arrival, and a plan names them by their position there. Every
column is a read-only array over them: a copy, gathered when it is first read, and valid during `decide`. `rows` are numbers that a job
keeps for life, for what a policy wants to remember. Nothing here leads to the engine's own tables. A job that has ended, or was put on
hold, is not among the active ones any more; what it used after the last question can be read in `snapshot.left`, once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.cluster_now import ClusterNow
from gantline.core.columns import HIGH, LOW, JobTable, Kind, TableColumn
from gantline.core.facts import NO_FACTS, Costs, Facts
from gantline.core.grant import Grant
from gantline.core.options import NO_BOUND, JobSize, Option, OptionTable, SizeBounds, SizeTable, believed, read_sizes
from gantline.core.phases import CHECKPOINTING, RUNNING, STARTING
from gantline.core.plan import Reservation
from gantline.core.queues import Queue
from gantline.core.rng import stream
from gantline.core.tables import Lent, Shown, Tables, sealed
from gantline.core.windows import AdvanceWindow


class Left(NamedTuple):
    """One entry per job, in the order of rows."""

    row: Ints
    user: Ints
    queue: Ints
    attained: Floats  # seconds run
    attained_gpu: Floats  # GPU-seconds run
    since: Floats  # when it stopped running


_NONE = np.zeros(0, dtype=np.int64)
NOBODY = Left(_NONE, _NONE, _NONE, np.zeros(0), np.zeros(0), np.zeros(0))


class _Moving(Shown[np.float64]):
    """One that moves with time, or follows from one as `columns.gather_moving` says."""

    def __init__(self, column: TableColumn[np.float64], what: str = "") -> None:
        property.__init__(self, lambda jobs: jobs._moving(column), doc=what or column.what)


class Jobs:
    """Columns over the active jobs (admitted, not ended) at one instant, in order of arrival."""

    __slots__ = ("_cache", "_held", "_learned", "_lent", "_now", "_rows", "rows")

    def __init__(self, lent: Lent, rows: Ints, now: float, learned: Any = None) -> None:
        self._rows = rows.copy()
        self.rows: Ints = sealed(self._rows[:])
        self._lent = lent
        self._now = now
        self._learned = learned
        self._cache: dict[Any, NDArray[Any]] = {}
        self._held: list[tuple[int, ...]] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def refresh(self, now: float, known: Mapping[object, Floats | Ints]) -> Collection[object]:
        """Stand for another instant, at which `rows` have these columns; what is read from now on is noted in what this returns."""
        self._rows, self._now, self._held = self.rows, now, None
        self._cache = dict(known)
        return self._cache

    def _read(self, column: TableColumn[Kind]) -> NDArray[Kind]:
        found = self._cache.get(column)
        if found is None:
            found = self._cache[column] = self._lent.column(column, self._rows)
        return found

    def _moving(self, column: TableColumn[np.float64]) -> Floats:
        found = self._cache.get(("moving", column))
        if found is None:
            found = self._cache["moving", column] = self._lent.moving(column, self._rows, self._now)
        return found

    def _made(self, name: Any, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """A column computed from others, once."""
        found = self._cache.get(name)
        if found is None:
            found = self._cache[name] = sealed(make())
        return found

    # --- what was asked for -----------------------------------------------------------------------------------------
    @property
    def ids(self) -> list[str]:
        """The names that users know the jobs by."""
        return self._lent.ids(self._rows)

    arrival = Shown(JobTable.arrival)
    gpus = Shown(JobTable.gpus)
    min_gpus = Shown(JobTable.min_gpus)
    max_gpus = Shown(JobTable.max_gpus)
    smallest = Shown(JobTable.smallest)
    reserved = Shown(JobTable.reserved)
    priority = Shown(JobTable.priority)
    weight = Shown(JobTable.weight)
    deadline = Shown(JobTable.deadline)
    user = Shown(JobTable.user)
    queue = Shown(JobTable.queue)
    app = Shown(JobTable.app)
    model = Shown(JobTable.model)

    @property
    def listed(self) -> Ints:
        """Where each job stood in the list that the snapshot was read from, for policies that imitate ties by input order."""
        return self._made("listed", lambda: self._lent.listed(self._rows))

    # --- what has happened ------------------------------------------------------------------------------------------
    attained = _Moving(JobTable.service)
    attained_gpu = _Moving(JobTable.gputime)
    done = _Moving(JobTable.done)

    waiting = _Moving(JobTable.since, "Seconds since a job that does not run began to wait; zero for those that run.")
    first_start = Shown(JobTable.first_start)
    last_start = Shown(JobTable.last_start)
    restarts = Shown(JobTable.restarts)
    preemptions = Shown(JobTable.preemptions)

    # --- what is estimated ------------------------------------------------------------------------------------------
    estimate = Shown(JobTable.estimate)

    @property
    def estimate_low(self) -> Floats:
        """The least that the total work is thought to be; the estimate itself where no range is known."""
        return self._made("low", lambda: self._ranged(LOW))

    @property
    def estimate_high(self) -> Floats:
        """The most that the total work is thought to be; the estimate itself where no range is known, or where it has been passed."""
        return self._made("high", lambda: np.maximum(self._ranged(HIGH), self.estimate))

    def _ranged(self, name: str) -> Floats:
        known = self._lent.metric(name, self._rows)
        return np.where(np.isnan(known), self.estimate, known)

    remaining = _Moving(JobTable.estimate, "Estimated remaining work: seconds at the speed of the request. Never below zero.")

    # --- where it stands --------------------------------------------------------------------------------------------
    phase = Shown(JobTable.phase)
    reason = Shown(JobTable.reason)

    @property
    def running(self) -> Bools:
        """Whether it holds devices (starting counts)."""
        return self._made("running", lambda: (self.phase >= STARTING) & (self.phase <= CHECKPOINTING + 2))

    @property
    def progressing(self) -> Bools:
        """Whether it does work at this instant: it runs, and its start is behind it."""
        return self._made("progressing", lambda: (self.phase == RUNNING) & (self._read(JobTable.since) <= self._now))

    held = Shown(JobTable.held)
    nodes_held = Shown(JobTable.spread)

    rate = _Moving(JobTable.rate, "Work per second now; zero for those that do not run.")

    @property
    def locked(self) -> Bools:
        """Whether the present grant must stay as it is."""
        return self._made("locked", lambda: self._read(JobTable.locked) != 0)

    until = Shown(JobTable.until)

    @property
    def option(self) -> Ints:
        """Which of its options is in use; -1: none."""
        used, first = self._read(JobTable.option), self.option_first
        return self._made("option", lambda: np.where(used < 0, -1, used - first))

    @property
    def type(self) -> Ints:
        """Code of the device type in use; -1: none."""
        return self._made("type", self._type)

    def _type(self) -> Ints:
        used = self._read(JobTable.option)
        kinds = self._lent.options().type
        return np.where(used < 0, -1, kinds[np.maximum(used, 0)]) if len(kinds) else np.full(len(used), -1, dtype=np.int64)

    option_first = Shown(JobTable.option_first)
    option_count = Shown(JobTable.option_count)

    def options(self, position: int) -> list[Option]:
        """The ways in which one job may run."""
        table, first = self._lent.options(), int(self.option_first[position])
        return [table[k] for k in range(first, first + int(self.option_count[position]))]

    def sizes(self, position: int) -> list[JobSize]:
        """The sizes that one job may have, each with its believed speed, by type and in rising order."""
        found: list[JobSize] = []
        for kind in dict.fromkeys(way.type for way in self.options(position) if way.gpus > 0):
            table = self.sizes_table(kind, np.array([position]))
            found += [JobSize(kind, gpus, rate) for gpus, rate in zip(table.size.tolist(), table.rate.tolist())]
        return found

    def sizes_table(self, type: int, positions: Ints | None = None, most: int = NO_BOUND) -> SizeTable:
        """The same for many jobs at once (all, or those at some positions) on one device type, without sizes above `most`."""
        some = slice(None) if positions is None else positions
        asked = (self.gpus, self.min_gpus, self.max_gpus, self.option_first, self.option_count)
        bounds, model = SizeBounds(*(column[some].copy() for column in asked)), self._lent.performance()
        table = read_sizes(bounds, self._lent.options(), type, most)
        if model is None:
            return table
        return believed(table, bounds.asked, self._lent.ids(self._rows[some]), type, model, lambda: self._learned)

    def devices(self, position: int) -> tuple[int, ...]:
        """The devices one job holds, its own or shared, in rank order."""
        held = self._held
        if held is None:
            held = self._held = self._lent.held(self._rows)  # of all at once: a policy that reads one usually reads many
        return held[position]

    def grant(self, position: int) -> Grant | None:
        """What one job holds beyond a gang of its own (group, fraction, offset, parts, shares of time, batch); None: nothing of that."""
        return self._lent.grant(int(self._rows[position]))

    def metric(self, name: str) -> Floats:
        """A number per job that its trace or its spec says, or that was measured; NaN where unknown."""
        return self._lent.metric(name, self._rows)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that are known of any job."""
        return self._lent.metrics()

    def matrices(self) -> tuple[Floats, Ints]:
        """Copies of all columns as two matrices (see `gantline.core.columns`), one entry per job here, for policies that are compiled.

        What a policy may not know is NaN in them.
        """
        return self._lent.matrices(self._rows)


__all__ = ["Jobs", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One instant, lent to a policy. Equal (snapshot, memory, seed) give equal plans.

    =================  ===============================================================================================
    ``now``            seconds since the beginning of the run
    ``decision``       the number of this question, counted from one
    ``seed``           of the run; see `rng`
    ``jobs``           columns over the active jobs in order of arrival (`Jobs`); plans name jobs by position in it
    ``cluster``        nodes, devices, what is free (`ClusterNow`)
    ``memory``         the plain value that the policy's last plan carried; None at first
    ``round``          length of a round in seconds; zero when decisions follow events
    ``reservations``   what earlier plans promised and still stands
    ``regime``         the way of counting time, for policies that imitate an artifact in its own regime
    ``learned``        what the performance model has learned so far, a plain value; None: nothing
    ``facts``          what holds throughout the run (`Facts`): ``costs``, ``prices``, ``min_run`` and ``latency``
    ``left``           the jobs that have left since the last question, with what they used until then (`Left`)
    =================  ===============================================================================================
    """

    now: float
    decision: int
    seed: int
    jobs: Jobs
    cluster: ClusterNow
    memory: Any = None
    round: float = 0.0
    reservations: tuple[Reservation, ...] = ()
    regime: str = "default"
    learned: Any = None
    facts: Facts = NO_FACTS
    lent: Lent = field(repr=False, compare=False, default=None)  # type: ignore[assignment]
    find_left: Callable[[], Left] = field(repr=False, compare=False, default=lambda: NOBODY)

    def rng(self, name: str) -> np.random.Generator:
        """A stream of random numbers of its own, keyed by (seed, decision, name)."""
        return stream(self.seed, self.decision, name)

    @property
    def costs(self) -> Costs:
        """Seconds that starts, stops, moves and changes of size cost."""
        return self.facts.costs

    @property
    def prices(self) -> Mapping[str, float]:
        """Money per device-hour, by device type; empty: nothing is said about money."""
        return self.facts.prices

    @property
    def min_run(self) -> float:
        """Seconds that a gang runs before it may be stopped."""
        return self.facts.min_run

    @property
    def latency(self) -> float:
        """Seconds from this snapshot to the commit of its plan."""
        return self.facts.latency

    @property
    def left(self) -> Left:
        """The jobs that were there at the last question and are not any more; like the columns of `jobs`, valid during `decide`."""
        return self.find_left()

    @property
    def users(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.user`."""
        return self.lent.names("users")

    @property
    def queues(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.queue`."""
        return self.lent.names("queues")

    @property
    def queue_tree(self) -> Mapping[str, Queue]:
        """The queues that the run declares: weight, quota, parent."""
        return self.lent.queue_tree()

    @property
    def windows(self) -> tuple[AdvanceWindow, ...]:
        """Devices that are reserved in advance; the engine keeps plans off them."""
        return self.lent.windows()

    @property
    def apps(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.app`."""
        return self.lent.names("apps")

    @property
    def models(self) -> tuple[str, ...]:
        """Names behind the codes of `jobs.model`."""
        return self.lent.names("models")

    @property
    def options(self) -> OptionTable:
        """The options of all jobs, read-only; see `jobs.option_first` and `jobs.option_count`."""
        return self.lent.options()

    @property
    def performance(self) -> Any:
        """The performance model of the run, None where it has none: how fast jobs are in other ways, see `gantline.models.model`."""
        return self.lent.performance()


def tables_behind(snapshot: Snapshot) -> Tables:
    """All of it, the truth included, for code that stores, replays or checks snapshots. Not for policies (tests/project sees to it)."""
    return snapshot.lent._tables
