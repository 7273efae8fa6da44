"""The active jobs at one instant, as columns: what a policy sees of them.

Jobs stand in order of arrival; a plan names them by their position here. Every column is a read-only copy, gathered when it is first
read; it is valid during `decide`. `rows` are numbers that a job keeps for life, for what a policy wants to remember.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.columns import Job
from gantline.core.columns import Option as OptionColumn
from gantline.core.estimates import HIGH, LOW
from gantline.core.gather import MOVING
from gantline.core.grant import Grant
from gantline.core.options import Option
from gantline.core.phases import CHECKPOINTING, RUNNING, STARTING
from gantline.core.sizes import NO_BOUND, JobSize, SizeBounds, SizeTable, believed, read_sizes
from gantline.core.snapshot_view import Lent, sealed


class _FloatColumn(property):
    """Reads one column of the tables: which, and what it says."""

    def __init__(self, column: int, what: str) -> None:
        super().__init__(lambda jobs: jobs._float(column), doc=what)

    if TYPE_CHECKING:

        def __get__(self, jobs: Any, kind: type | None = None) -> Floats: ...  # type: ignore[override]


class _IntColumn(property):
    def __init__(self, column: int, what: str) -> None:
        super().__init__(lambda jobs: jobs._int(column), doc=what)

    if TYPE_CHECKING:

        def __get__(self, jobs: Any, kind: type | None = None) -> Ints: ...  # type: ignore[override]


class _MovingColumn(_FloatColumn):
    """Of one that grows with time."""

    def __init__(self, column: int, what: str) -> None:
        property.__init__(self, lambda jobs: jobs._moving(column), doc=what)


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

    def refresh(self, now: float, known: Mapping[int, Floats | Ints]) -> Collection[object]:
        """Stand for another instant, at which `rows` have these columns; what is read from now on is noted in what this returns."""
        self._rows, self._now, self._held = self.rows, now, None
        self._cache = dict(known)
        return self._cache

    def __len__(self) -> int:
        return len(self.rows)

    def _float(self, column: int) -> Floats:
        found = self._cache.get(column)
        if found is None:
            found = self._cache[column] = self._lent.floats(column, self._rows)
        return found

    def _int(self, column: int) -> Ints:
        found = self._cache.get(~column)
        if found is None:
            found = self._cache[~column] = self._lent.ints(column, self._rows)
        return found

    def _moving(self, column: int) -> Floats:
        found = self._cache.get(MOVING + column)
        if found is None:
            found = self._cache[MOVING + column] = self._lent.moving(column, self._rows, self._now)
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

    arrival = _FloatColumn(Job.ARRIVAL, "When each was submitted.")
    gpus = _IntColumn(Job.GPUS, "Devices asked for.")
    min_gpus = _IntColumn(Job.MIN_GPUS, "Fewest devices with which it may run.")
    max_gpus = _IntColumn(Job.MAX_GPUS, "Most devices that it can use.")
    smallest = _IntColumn(Job.SMALLEST, "Devices of its smallest option.")
    reserved = _IntColumn(Job.RESERVED, "Devices that are kept for it, whatever others ask for; zero: none.")
    priority = _FloatColumn(Job.PRIORITY, "Higher is more urgent.")
    weight = _FloatColumn(Job.WEIGHT, "Fair-share weight.")
    deadline = _FloatColumn(Job.DEADLINE, "When it should be done; NaN: no deadline.")
    user = _IntColumn(Job.USER, "Code of the user; `snapshot.users` has the names.")
    queue = _IntColumn(Job.QUEUE, "Code of the queue; `snapshot.queues` has the names.")
    app = _IntColumn(Job.APP, "Code of the application (a group of hyper-parameter trials); `snapshot.apps` has the names.")
    model = _IntColumn(Job.MODEL, "Code of the kind of job (which network it trains); `snapshot.models` has the names.")

    @property
    def listed(self) -> Ints:
        """Where each job stood in the list that the snapshot was read from, for policies that imitate ties by input order."""
        return self._made("listed", lambda: self._lent.listed(self._rows))

    # --- what has happened ------------------------------------------------------------------------------------------
    attained = _MovingColumn(Job.SERVICE, "Seconds run so far.")
    attained_gpu = _MovingColumn(Job.GPUTIME, "GPU-seconds run so far.")
    done = _MovingColumn(Job.DONE, "Work done so far.")
    waiting = _MovingColumn(Job.SINCE, "Seconds since a job that does not run began to wait; zero for those that run.")
    first_start = _FloatColumn(Job.FIRST_START, "First time it was given devices; NaN: never.")
    last_start = _FloatColumn(Job.LAST_START, "Start of the present or last run; NaN: it never ran.")
    restarts = _IntColumn(Job.RESTARTS, "How often it has started again.")
    preemptions = _IntColumn(Job.PREEMPTIONS, "How often it was stopped for others.")

    # --- what is estimated ------------------------------------------------------------------------------------------
    estimate = _FloatColumn(Job.ESTIMATE, "Estimated total work.")

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

    remaining = _MovingColumn(Job.ESTIMATE, "Estimated remaining work: seconds at the speed of the request. Never below zero.")

    # --- where it stands --------------------------------------------------------------------------------------------
    phase = _IntColumn(Job.PHASE, "Where it stands, see `gantline.core.phases.Phase`.")
    reason = _IntColumn(
        Job.REASON, "Why it does not run, or why it did not get the other grant it was to have: codes of `gantline.core.reasons.Reason`."
    )

    @property
    def running(self) -> Bools:
        """Whether it holds devices (starting counts)."""
        return self._made("running", lambda: (self.phase >= STARTING) & (self.phase <= CHECKPOINTING + 2))

    @property
    def progressing(self) -> Bools:
        """Whether it does work at this instant: it runs, and its start is behind it."""
        return self._made("progressing", lambda: (self.phase == RUNNING) & (self._float(Job.SINCE) <= self._now))

    held = _IntColumn(Job.HELD, "Devices held now.")
    nodes_held = _IntColumn(Job.SPREAD, "Nodes that its gang spans now.")

    rate = _MovingColumn(Job.RATE, "Work per second now; zero for those that do not run.")

    @property
    def locked(self) -> Bools:
        """Whether the present grant must stay as it is."""
        return self._made("locked", lambda: self._int(Job.LOCKED) != 0)

    until = _FloatColumn(Job.UNTIL, "End of the present lease; infinity: none.")

    @property
    def option(self) -> Ints:
        """Which of its options is in use; -1: none."""
        return self._made("option", lambda: np.where(self._int(Job.OPTION) < 0, -1, self._int(Job.OPTION) - self._int(Job.OPTION_FIRST)))

    @property
    def type(self) -> Ints:
        """Code of the device type in use; -1: none."""
        return self._made("type", self._type)

    def _type(self) -> Ints:
        used = self._int(Job.OPTION)
        kinds = self._lent.options().I[OptionColumn.TYPE]
        return np.where(used < 0, -1, kinds[np.maximum(used, 0)]) if len(kinds) else np.full(len(used), -1, dtype=np.int64)

    option_first = _IntColumn(Job.OPTION_FIRST, "First row of each job's options in `snapshot.options`.")
    option_count = _IntColumn(Job.OPTION_COUNT, "How many options each job has.")

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
