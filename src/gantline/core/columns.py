"""The columns of the tables: jobs, options, nodes and devices, each a matrix of floats and one of integers.

Each table is described once, by a class of columns: what a column means, what a blank row has, its unit, and which input sets it
(none: the engine keeps it). Snapshots are written from this description, submitted jobs are read by it, and the documentation lists it.

Jobs live in two matrices, ``F`` (float64) and ``I`` (int64), of shape (columns, rows), one row per job for life. Compiled
kernels take the matrices and index them with the constants below, ``F[Job.DUE, row]``; Python code reads a column by its name,
``jobs.due[row]``, and that is a view of the matrix. Two
arguments instead of forty is what keeps a kernel call at about a microsecond. In memory a column lies together: rows are
numbered by arrival, so the thousands that wait are nearly neighbours, and the few hundred that run stay in the cache
either way.

Columns that move with time are linear between events. For a running row, with ``dt = max(0, now - F[Job.SINCE])``:

    work done   = F[Job.DONE]    + F[Job.RATE] * dt
    service     = F[Job.SERVICE] + dt                  (seconds run)
    GPU service = F[Job.GPUTIME] + I[Job.HELD] * dt    (GPU-seconds run)

so a start-up cost of 30 s is simply ``SINCE = now + 30``: the job holds its devices at rate zero until then. Because nothing is
accumulated step by step, looking at a job more often never changes its numbers: skipping rounds equals stepping through them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar, Final, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.constants import Constants
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING, STARTING, STOPPING

# in DeviceTable.holder
FREE: Final = -1
DOWN: Final = -2
SHARED: Final = -3  # see engine.sharing
ASKED_TOGETHER: Final = 2  # in JobTable.consolidate
DEVICE_MEMORY: Final = "device_memory"  # the metric: GB that a job needs on each device
LOW: Final = "estimate.low"  # metrics: the range of an estimate of total work
HIGH: Final = "estimate.high"
# what gangs take beside devices, as nodes, options and assignments call it: Node.CPUS + k is what is free of Option.CPUS + k
HOST_RESOURCE_NAMES: Final = ("cpus", "memory", "storage")
HOST_RESOURCES: Final = 3
#: codes of columns of jobs for `gather`: the place of one of floats, the complement for one of integers, so much more for one that moves
MOVING: Final = 1000


class Job(Constants):
    """Places of the columns of `JobTable` in its matrices: those of F, then those of I."""

    WORK, DONE, RATE, SINCE, KEY, ESTIMATE, SERVICE, GPUTIME, ARRIVAL, SAFE, FIRST_START, LAST_START, FINISH = range(13)
    DEADLINE, PRIORITY, WEIGHT, LOST, CHECKPOINT, ADMITTED, UNTIL, WAITED, MARK, DUE, SPEED_UNTIL, LIMIT_END = range(13, 25)
    PHASE, HELD, HEAD, OPTION, FLAGS, LOCKED, GPUS, INTERVAL, OPTION_FIRST, OPTION_COUNT, SMALLEST, NODE, EPOCH = range(13)
    REASON, SPREAD, CONSOLIDATE, USER, QUEUE, APP, PREEMPTIONS, RESTARTS, MIN_GPUS, MAX_GPUS, MODEL, RESERVED = range(13, 25)


class Option(Constants):
    """Places of the columns of `gantline.core.options.OptionTable`."""

    RATE, RATE_SPREAD, CPUS, MEMORY, STORAGE = range(5)
    TYPE, GPUS, NODES = range(3)


class Node(Constants):
    """Places of the columns of `NodeTable`."""

    CPUS, MEMORY, STORAGE = range(3)
    TYPE, FREE, GPUS, FIRST, UP, RACK, RECLAIM, CLOSED = range(8)


class Device(Constants):
    """Places of the columns of `DeviceTable`, which has integers only."""

    HOLDER, NEXT, NODE, CLOSED = range(4)


Kind = TypeVar("Kind", np.float64, np.int64)


@dataclass(eq=False)
class TableColumn(Generic[Kind]):
    """One column. Of a table it is a view of the matrix, of the class of the table this description."""

    kind: type[Kind]
    what: str  # what it means
    default: float = 0
    unit: str = ""
    source: str = ""  # the input that sets it; empty: the engine keeps it
    secret: bool = False  # it says what really will be, or is scratch of kernels: no policy may read it
    written: bool = True  # whether snapshots have it as a number; else it follows from others, or is written in another way
    names: str = ""  # it is the code of a name, which stands in this list of the tables and is written in its place
    key: str = ""  # what snapshots call it
    name: str = field(init=False)
    place: int = field(init=False)
    table: type[ColumnTable] = field(init=False)

    def __set_name__(self, owner: type[ColumnTable], name: str) -> None:
        self.table, self.name, self.key, self.place = owner, name, self.key or name, getattr(owner.places, name.upper())

    @overload
    def __get__(self, table: None, owner: type[ColumnTable]) -> TableColumn[Kind]: ...
    @overload
    def __get__(self, table: ColumnTable, owner: type[ColumnTable]) -> NDArray[Kind]: ...
    def __get__(self, table: ColumnTable | None, owner: type[ColumnTable]) -> TableColumn[Kind] | NDArray[Any]:
        if table is None:
            return self
        matrix: NDArray[Any] = table.F if self.kind is np.float64 else table.I
        view: NDArray[Any] = matrix[self.place]
        table.__dict__[self.name] = view
        return view


number = partial(TableColumn, np.float64)
whole = partial(TableColumn, np.int64)
code = partial(TableColumn, np.int64, source="submit", written=False)  # of a name that is given when a job is submitted
place = partial(TableColumn, np.int64, written=False)  # what means something in one run only: rows and devices, counts of these, scratch


class ColumnTable:
    """Two matrices whose columns have names. A column is written in place: ``jobs.due[rows] = 5.0``."""

    places: ClassVar[type[Constants]]

    def __init__(self, F: Floats, I: Ints) -> None:
        self.F, self.I = F, I

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(getattr(type(self), name, None), TableColumn):
            raise AttributeError(f"a column is written in place: {name}[:] = ...")
        super().__setattr__(name, value)

    @classmethod
    @cache
    def columns(cls, kind: type | None = None) -> tuple[TableColumn[Any], ...]:
        """All columns in the order of their places, or those of one kind."""
        listed = [item for base in reversed(cls.__mro__) for item in vars(base).values() if isinstance(item, TableColumn)]
        return tuple(item for item in listed if kind in (None, item.kind))

    @classmethod
    def blank(cls, rows: int) -> Self:
        """A table of blank rows."""
        F = np.zeros((len(cls.columns(np.float64)), rows))
        found = cls(F, np.zeros((len(cls.columns(np.int64)), rows), dtype=np.int64))
        for column in cls.columns():
            if column.default:
                getattr(found, column.name)[:] = column.default
        return found

    def hold(self, F: Floats, I: Ints) -> None:
        """These are its matrices from now on."""
        for column in self.columns():
            self.__dict__.pop(column.name, None)
        self.F, self.I = F, I

    def grow(self, rows: int) -> None:
        """Make room for so many rows; those that come in are blank."""
        known, wider = self.F.shape[1], self.blank(rows)
        wider.F[:, :known], wider.I[:, :known] = self.F, self.I
        self.hold(wider.F, wider.I)

    def copy(self) -> Self:
        """The same rows, to be changed apart from these."""
        return type(self)(self.F.copy(), self.I.copy())


class JobTable(ColumnTable):
    """One row per job."""

    places = Job
    work = number("True amount of work; only an executor in virtual time may read it.", source="submit", secret=True)
    done = number("Work done so far.")
    rate = number("Work per second since `since`.")
    since = number("Time of the last change; it may lie ahead while the job starts.", unit="s")
    key = number("Rank of the last decision.", secret=True)
    estimate = number("Estimated total work.", source="submit")
    service = number("Seconds run so far.", unit="s")
    gputime = number("GPU-seconds run so far.", unit="GPU s", key="gpu_time")
    arrival = number("When it was submitted.", unit="s")
    safe = number("Work that survives a failure (checkpointed).")
    first_start = number("First time it was given devices; NaN: never.", default=math.nan, unit="s")
    last_start = number("Start of the present or last run; NaN: it never ran.", default=math.nan, unit="s")
    finish = number("Its end; NaN: not yet.", default=math.nan, unit="s", secret=True)
    deadline = number("When it should be done; NaN: no deadline.", default=math.nan, unit="s", source="submit")
    priority = number("Higher is more urgent.", source="submit")
    weight = number("Fair-share weight.", default=1.0, source="submit")
    lost = number("Work lost to failures.")
    checkpoint = number("Time between checkpoints (infinity: only when stopped on purpose; 0: always safe).", unit="s", source="submit")
    admitted = number("When admission let it in; NaN: not yet.", default=math.nan, unit="s")
    until = number("End of the present lease; infinity: none.", default=math.inf, unit="s")
    waited = number("Time spent waiting until `since`, for rows that wait.", unit="s")
    mark = number("When its first result was credited (responsiveness).", default=math.nan, unit="s")
    due = number("While it runs: when it is done, or its estimate proves too low.", unit="s", secret=True)
    speed_until = number("When its speed changes by itself; infinity: never.", default=math.inf, unit="s")
    limit_end = number("When its run ends by itself; infinity: never.", default=math.inf, unit="s")

    phase = place("Where it stands, see `gantline.core.phases.Phase`.")
    held = whole("Devices held now.")
    head = place("First device of its gang; the rest are linked by `DeviceTable.next`. -1: none.", default=-1)
    option = place("Row of the option in use; -1: none.", default=-1)
    flags = place("Scratch of the walk.")
    locked = whole("1: the present grant must stay as it is.")
    gpus = whole("Devices asked for.", source="submit")
    interval = place("Row of the open interval in the log; -1: none.", default=-1)
    option_first = place("First row of its options in the table of options.")
    option_count = place("How many options it has.")
    smallest = place("Devices of its smallest option.")
    node = place("Node of a grant without devices (a CPU option); -1: none.", default=-1)
    epoch = whole("Number of its grants so far: the fencing token of the present one.", source="submit")
    reason = whole("Why it does not run, or did not get the other grant it was to have, see `gantline.core.reasons.Reason`.")
    spread = place("Nodes that its gang spans now.")
    consolidate = whole("1: sensitive to placement by its model; 2: it asked to be on one node.", source="submit")
    user = code("Whose it is; `snapshot.users` has the names.", names="users")
    queue = code("Its queue; `snapshot.queues` has the names.", names="queues")
    app = code("Its application (a group of hyper-parameter trials); `snapshot.apps` has the names.", names="apps")
    preemptions = whole("How often it was stopped for others.")
    restarts = whole("How often it has started again.")
    min_gpus = whole("Fewest devices with which it may run.", source="submit")
    max_gpus = whole("Most devices that it can use.", source="submit")
    model = code("Its kind (which network it trains); `snapshot.models` has the names.", names="models")
    reserved = whole("Devices that are kept for it, whatever others ask for; zero: none.", source="submit")


class NodeTable(ColumnTable):
    """One row per node."""

    places = Node
    cpus = number("Free CPUs.")
    memory = number("Free memory.", unit="GB")
    storage = number("Free bandwidth to storage.", unit="MB/s")

    type = place("Code of the device type.")
    free = place("Free devices; zero while it is down.")
    gpus = place("Devices, free or not.")
    first = place("Its first device; the others follow one another.")
    up = place("1: usable.", default=1)
    rack = place("Code of its rack; nodes of one code are near one another.")
    reclaim = place("Scratch of the walk: devices that lower-ranked gangs would give up.")
    closed = place("Its devices that are cordoned, held or not.")


class DeviceTable(ColumnTable):
    """One row per device."""

    places = Device
    holder = place("Row of the job that holds it, or FREE, DOWN, SHARED.", default=FREE)
    next = place("Next device of the same gang; -1: the last.", default=-1)
    node = place("Its node.")
    closed = place("1: cordoned, it takes no new gang.")


@kernel
def elapsed(F: Floats, I: Ints, row: int, now: float) -> float:
    """Seconds the row has progressed since its last change."""
    if I[Job.PHASE, row] == RUNNING and now > F[Job.SINCE, row]:
        return float(now - F[Job.SINCE, row])
    return 0.0


@kernel
def _moved(F: Floats, I: Ints, row: int, now: float, column: int) -> float:
    """One number, see `gather_moving`."""
    ran = elapsed(F, I, row, now)
    if column == Job.SERVICE:
        return float(F[Job.SERVICE, row] + ran)
    if column == Job.GPUTIME:
        return float(F[Job.GPUTIME, row] + I[Job.HELD, row] * ran)
    if column == Job.RATE or column == Job.SINCE:
        runs = STARTING <= I[Job.PHASE, row] <= STOPPING
        if column == Job.RATE:
            return float(F[Job.RATE, row]) if runs else 0.0
        return 0.0 if runs or now < F[Job.SINCE, row] else float(now - F[Job.SINCE, row])
    done = F[Job.DONE, row] + F[Job.RATE, row] * ran
    if column == Job.DONE:
        return float(done)
    left = F[Job.ESTIMATE, row] - done
    return 0.0 if left < 0.0 else float(left)


@kernel
def gather_moving(F: Floats, I: Ints, rows: Ints, now: float, column: int, out: Floats) -> None:
    """A column that moves with time: DONE, SERVICE, GPUTIME, RATE; SINCE: seconds waited; ESTIMATE: what remains of it."""
    for i in range(rows.shape[0]):
        out[i] = _moved(F, I, rows[i], now, column)


def moving(F: Floats, I: Ints, rows: Ints, now: float, column: int) -> Floats:
    """The same as a new array."""
    out = np.empty(len(rows))
    gather_moving(F, I, rows, float(now), column, out)
    return out


@kernel
def gather(F: Floats, I: Ints, rows: Ints, now: float, codes: Ints, floats: Floats, ints: Ints) -> None:
    """Columns by their codes, one per line: of `floats`, or of `ints` where they are whole numbers."""
    for line in range(codes.shape[0]):
        code = codes[line]
        if code >= MOVING:
            gather_moving(F, I, rows, now, code - MOVING, floats[line])
        else:
            for i in range(rows.shape[0]):
                if code >= 0:
                    floats[line, i] = F[code, rows[i]]
                else:
                    ints[line, i] = I[~code, rows[i]]
