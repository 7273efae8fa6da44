"""The tables behind a snapshot: jobs, options, nodes and devices as matrices, plus the names behind the codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import DOWN, FREE, HOST_RESOURCE_NAMES, DeviceTable, JobTable, NodeTable
from gantline.core.grant import Granted
from gantline.core.options import OptionTable
from gantline.core.queues import Queue
from gantline.core.snapshot_view import Lent

if TYPE_CHECKING:
    from gantline.core.snapshot import Snapshot
    from gantline.core.windows import AdvanceWindow


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


def tables_behind(snapshot: Snapshot) -> Tables:
    """All of it, the truth included, for code that stores, replays or checks snapshots. Not for policies (tests/project sees to it)."""
    return snapshot.lent._tables
