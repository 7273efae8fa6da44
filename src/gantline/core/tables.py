"""The tables of one cluster and all its jobs, and what a snapshot is lent of them.

The tables are jobs, options, nodes and devices as columns, and the names behind the codes. A policy must not read the truth (how much
work a job really has, when it will really end) and must not write anything, by mistake least of all. So a snapshot holds no matrix and no
view of one: the methods of `Lent` copy out what a policy may know, and nothing that they return can be written to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import (
    DOWN,
    FREE,
    HOST_RESOURCE_NAMES,
    ColumnTable,
    Device,
    DeviceTable,
    Job,
    JobTable,
    Kind,
    NodeTable,
    TableColumn,
    moving,
)
from gantline.core.errors import GantlineError
from gantline.core.grant import Grant, Granted
from gantline.core.jit import kernel
from gantline.core.options import OptionTable
from gantline.core.queues import Queue
from gantline.core.windows import AdvanceWindow


def sealed(array: NDArray[Kind]) -> NDArray[Kind]:
    """The same array, read-only from now on."""
    array.flags.writeable = False
    return array


class Shown(property, Generic[Kind]):
    """A column as policies see it: a copy that is described as the column is."""

    def __init__(self, column: TableColumn[Kind]) -> None:
        super().__init__(lambda owner: owner._read(column), doc=column.what)

    if TYPE_CHECKING:

        def __get__(self, owner: Any, kind: type | None = None) -> NDArray[Kind]: ...  # type: ignore[override]


class Lent:
    """The ways in which a snapshot may read the tables; each says what they are when it is called."""

    __slots__ = ("_tables",)

    def __init__(self, tables: Tables) -> None:
        self._tables = tables  # the truth included: `tables_behind` alone reads it

    def column(self, column: TableColumn[Kind], rows: Ints | None = None) -> NDArray[Kind]:
        """Of some rows, or of all."""
        if column.secret:
            raise GantlineError("this column is not for policies", where="snapshot")
        tables: dict[type[ColumnTable], ColumnTable] = {
            type(one): one for one in (self._tables.jobs, self._tables.nodes, self._tables.devices)
        }
        values: NDArray[Kind] = getattr(tables[column.table], column.name)
        return sealed(values.copy() if rows is None else values[rows])

    def moving(self, column: TableColumn[np.float64], rows: Ints, now: float) -> Floats:
        return sealed(moving(self._tables.F, self._tables.I, rows, now, column.place))

    def matrices(self, rows: Ints) -> tuple[Floats, Ints]:
        """All columns of some rows."""
        F = self._tables.F.take(rows, axis=1)
        F[[column.place for column in JobTable.columns(np.float64) if column.secret]] = np.nan
        return F, self._tables.I.take(rows, axis=1)

    def ids(self, rows: Ints) -> list[str]:
        known = self._tables.ids
        return [known[row] for row in rows.tolist()]

    def names(self, kind: str) -> tuple[str, ...]:
        """Of "users", "queues", "apps" or "models"."""
        return tuple(getattr(self._tables, kind))

    def queue_tree(self) -> Mapping[str, Queue]:
        return MappingProxyType(self._tables.queue_tree)

    def windows(self) -> tuple[AdvanceWindow, ...]:
        return tuple(self._tables.windows.values())

    def options(self) -> OptionTable:
        return self._tables.options.frozen()

    def devices(self, row: int) -> tuple[int, ...]:
        """Of one row."""
        grant = self._tables.granted.get(row)
        if grant is not None and grant.shared:
            return grant.devices
        return tuple(self._tables.chain(row))

    def held(self, rows: Ints) -> list[tuple[int, ...]]:
        """The devices of each row, its own or shared, in rank order."""
        tables, granted = self._tables, self._tables.granted
        ends, devices = np.empty(len(rows), dtype=np.int64), np.empty(tables.cluster.gpus, dtype=np.int64)
        _read_chains(tables.I, tables.D, rows, ends, devices)
        stops = [0, *ends.tolist()]
        chained = devices[: stops[-1]].tolist()
        found = [tuple(chained[begin:end]) for begin, end in pairwise(stops)]
        for at in np.flatnonzero(granted.has(rows)).tolist() if granted else ():
            if not found[at] and (grant := granted[int(rows[at])]).shared:
                found[at] = grant.devices
        return found

    def grant(self, row: int) -> Grant | None:
        return self._tables.granted.get(row)

    def listed(self, rows: Ints) -> Ints:
        return sealed(rows.copy() if self._tables.listed is None else self._tables.listed[rows])

    def metric(self, name: str, rows: Ints) -> Floats:
        column = self._tables.metrics.get(name)
        return sealed(np.full(len(rows), np.nan) if column is None else column[rows])

    def metrics(self) -> tuple[str, ...]:
        return tuple(self._tables.metrics)

    def node_matrices(self) -> tuple[Floats, Ints, Ints]:
        """Nodes and devices, all columns."""
        return self._tables.NF.copy(), self._tables.NI.copy(), self._tables.D.copy()

    def cluster(self) -> Cluster:
        return self._tables.cluster

    def performance(self) -> Any:
        return self._tables.performance


@kernel
def _read_chains(I: Ints, D: Ints, rows: Ints, ends: Ints, devices: Ints) -> None:
    """The devices that rows have to themselves, one chain behind the other, and where each ends."""
    used = 0
    for i in range(rows.shape[0]):
        device = I[Job.HEAD, rows[i]]
        while device >= 0:
            devices[used] = device
            used += 1
            device = D[Device.NEXT, device]
        ends[i] = used


class Matrices(NamedTuple):
    """The tables as kernels take them; `core.columns` names the columns of each."""

    F: Floats  # jobs
    I: Ints
    OF: Floats  # options
    OI: Ints
    NF: Floats  # nodes
    NI: Ints
    D: Ints  # devices


@dataclass
class Tables:
    """One cluster and all its jobs. The engine writes them, a snapshot lends them to a policy."""

    cluster: Cluster
    jobs: JobTable
    options: OptionTable
    nodes: NodeTable
    devices: DeviceTable
    names: Callable[[], list[str]] | None = None  # the ids of all rows, made when first needed
    users: list[str] = field(default_factory=lambda: [""])
    queues: list[str] = field(default_factory=lambda: [""])
    apps: list[str] = field(default_factory=lambda: [""])
    models: list[str] = field(default_factory=lambda: [""])
    queue_tree: dict[str, Queue] = field(default_factory=dict)
    windows: dict[str, AdvanceWindow] = field(default_factory=dict)  # devices that are reserved in advance
    kept_free: set[int] = field(default_factory=set)  # devices that are cordoned for windows, and for nothing else
    unestimated: set[int] = field(default_factory=set)  # rows whose length is unknown: their estimate is a guess
    metrics: dict[str, Floats] = field(default_factory=dict)  # by name, one value per row: what its trace or its spec says, what was
    # measured; NaN where unknown
    rate_changes: Ints | None = None  # by row: how often its speed changed while it ran, counted from the first shared device on
    verdicts: dict[str, Floats] = field(default_factory=dict)  # of a finished run: columns of its table of jobs, hidden from policies
    left_out: int = 0  # options that jobs listed and the cluster cannot hold
    granted: Granted = field(default_factory=Granted)  # by row: grants that are more than a gang of its own
    trials: dict[int, float] = field(default_factory=dict)  # by row: work done when its trial began, which is what it falls back to
    waits_for_turn: set[int] = field(default_factory=set)  # rows whose rotation goes on without them
    listed: Ints | None = None  # per row: its place in the file it was read from, where that is not the order of arrival
    performance: Any = None  # the performance model: how fast jobs are in other ways, and together (see gantline.models.model)
    steps: Floats | None = None  # true training steps of each row, where a table of throughputs counts in steps

    def __post_init__(self) -> None:
        self.lent = Lent(self)  # what snapshots may read

    @property
    def F(self) -> Floats:
        return self.jobs.F

    @property
    def I(self) -> Ints:  # noqa: E743
        return self.jobs.I

    @property
    def NF(self) -> Floats:
        return self.nodes.F

    @property
    def NI(self) -> Ints:
        return self.nodes.I

    @property
    def D(self) -> Ints:
        return self.devices.I

    @property
    def cordoned(self) -> set[int]:
        """Devices that take no new gang."""
        return set(np.flatnonzero(self.devices.closed == 1).tolist())

    def cordon(self, device: int, closed: bool = True) -> None:
        """Close the device to new gangs, or open it again; a gang that holds it keeps it."""
        nodes, devices = self.nodes, self.devices
        node, was = int(devices.node[device]), int(devices.closed[device])
        devices.closed[device] = int(closed)
        nodes.closed[node] += int(closed) - was
        if closed and devices.holder[device] == FREE:
            devices.holder[device] = DOWN
            nodes.free[node] -= 1
        elif not closed and devices.holder[device] == DOWN and nodes.up[node] == 1:
            devices.holder[device] = FREE
            nodes.free[node] += 1

    @cached_property
    def ids(self) -> list[str]:
        """The names of the jobs. A run that is only summed up never makes them, which would be a tenth of a quick one."""
        return [] if self.names is None else self.names()

    @property
    def count(self) -> int:
        """How many jobs there are; rows beyond are room for more."""
        return len(self.ids) if self.names is None or "ids" in self.__dict__ else self.F.shape[1]

    def add_row(self, name: str) -> int:
        """A blank row for a new job; the matrices grow by doubling, and blank rows never arrive."""
        row = len(self.ids)
        if row == self.F.shape[1]:
            more = max(row, 16 - row)
            self.jobs.grow(row + more)
            self.jobs.arrival[row:] = np.inf
            self.metrics = {key: np.concatenate([column, np.full(more, np.nan)]) for key, column in self.metrics.items()}
            if self.listed is not None:
                self.listed = np.concatenate([self.listed, np.arange(row, row + more)])
            if self.rate_changes is not None:
                self.rate_changes = np.concatenate([self.rate_changes, np.zeros(more, dtype=np.int64)])
            if self.steps is not None:
                self.steps = np.concatenate([self.steps, np.full(more, np.nan)])
        self.ids.append(name)
        return row

    def repeat(self, row: int, times: int) -> None:
        """So many rows behind it are as this one is; each has options of its own, which are listed already."""
        if times:
            rest = slice(row + 1, row + 1 + times)
            self.F[:, rest], self.I[:, rest] = self.F[:, row : row + 1], self.I[:, row : row + 1]
            self.jobs.option_first[rest] += self.jobs.option_count[row] * np.arange(1, 1 + times)
            for values in self.metrics.values():
                values[rest] = values[row]

    def chain(self, row: int) -> list[int]:
        """The devices that a row has to itself, in rank order."""
        device, held = int(self.jobs.head[row]), []
        while device >= 0:
            held.append(device)
            device = int(self.devices.next[device])
        return held

    def metric(self, name: str) -> Floats:
        """The column of a metric, made of NaN where there is none yet."""
        known = self.metrics.get(name)
        if known is None or len(known) < self.F.shape[1]:
            fresh = np.full(self.F.shape[1], np.nan)
            if known is not None:
                fresh[: len(known)] = known
            known = self.metrics[name] = fresh
        return known

    def copy(self) -> Tables:
        """The same jobs on the same cluster, to be changed apart from these; what the performance model knows is shared."""
        found = Tables(self.cluster, self.jobs.copy(), self.options.copy(), self.nodes.copy(), self.devices.copy())
        found.ids = list(self.ids)
        found.users, found.queues, found.apps, found.models = [*self.users], [*self.queues], [*self.apps], [*self.models]
        found.queue_tree, found.granted = dict(self.queue_tree), Granted(self.granted.items())
        found.waits_for_turn = set(self.waits_for_turn)
        found.windows, found.kept_free, found.unestimated = dict(self.windows), set(self.kept_free), set(self.unestimated)
        found.trials = dict(self.trials)
        found.metrics = {name: column.copy() for name, column in self.metrics.items()}
        found.listed, found.performance, found.steps = self.listed, self.performance, self.steps
        return found

    def trim(self) -> None:
        """Give up the room for more rows."""
        n = self.count
        if n < self.F.shape[1]:
            self.jobs.hold(self.F[:, :n].copy(), self.I[:, :n].copy())

    @staticmethod
    def empty(cluster: Cluster, rows: int = 0) -> Tables:
        """All nodes up and idle, `rows` blank jobs."""
        nodes, devices = NodeTable.blank(len(cluster.nodes)), DeviceTable.blank(cluster.gpus)
        for name in HOST_RESOURCE_NAMES:
            getattr(nodes, name)[:] = [getattr(node, name) for node in cluster.nodes]
        nodes.type[:], nodes.rack[:], nodes.first[:] = cluster.node_type, cluster.node_rack, cluster.first_device
        nodes.free[:] = nodes.gpus[:] = cluster.node_gpus
        devices.node[:] = cluster.device_node
        return Tables(cluster, JobTable.blank(rows), OptionTable.blank(0), nodes, devices)
