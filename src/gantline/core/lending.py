"""What a snapshot is lent of the tables: functions that copy out what a policy may know, and nothing that leads back to the matrices.

A policy must not read the truth (how much work a job really has, when it will really end) and must not write anything, by mistake
least of all. So a snapshot holds no matrix and no view of one: it holds these functions, and what they return is a copy that cannot be
written to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.chains import Chains
from gantline.core.cluster import Cluster
from gantline.core.errors import GantlineError
from gantline.core.gather import moving
from gantline.core.grant import Grant
from gantline.core.granted import Granted
from gantline.core.options import OptionTable
from gantline.core.queues import Queue

#: float columns that say what really will be, or that kernels use as scratch: no policy may read them
SECRET = frozenset({c.WORK, c.DUE, c.FINISH, c.KEY})
_SECRET = sorted(SECRET)
if TYPE_CHECKING:
    from gantline.core.windows import AdvanceWindow

INSIDER = object()  # opens the tables themselves, see `core.insiders`


class Lent(NamedTuple):
    """The ways in which a snapshot may read the tables."""

    floats: Callable[[int, Ints], Floats]  # (column, rows)
    ints: Callable[[int, Ints], Ints]
    moving: Callable[[int, Ints, float], Floats]  # (column, rows, now)
    matrices: Callable[[Ints], tuple[Floats, Ints]]  # all columns of some rows
    ids: Callable[[Ints], list[str]]
    names: Callable[[str], tuple[str, ...]]  # "users", "queues", "apps", "models"
    queue_tree: Callable[[], Mapping[str, Queue]]
    windows: Callable[[], tuple[AdvanceWindow, ...]]
    options: Callable[[], OptionTable]
    devices: Callable[[int], tuple[int, ...]]  # of one row
    held: Callable[[Ints], list[tuple[int, ...]]]  # the devices of each row, its own or shared, in rank order
    grant: Callable[[int], Grant | None]
    listed: Callable[[Ints], Ints]
    metric: Callable[[str, Ints], Floats]
    metrics: Callable[[], tuple[str, ...]]
    node_floats: Callable[[int], Floats]
    node_ints: Callable[[int], Ints]
    device_ints: Callable[[int], Ints]
    node_matrices: Callable[[], tuple[Floats, Ints, Ints]]  # nodes and devices, all columns
    cluster: Callable[[], Cluster]
    performance: Callable[[], Any]
    insider: Callable[[object], Any]


class Lender(Protocol):
    """What is read of tables."""

    cluster: Cluster
    F: Floats
    I: Ints
    options: OptionTable
    NF: Floats
    NI: Ints
    D: Ints
    queue_tree: dict[str, Queue]
    windows: dict[str, AdvanceWindow]
    metrics: dict[str, Floats]
    granted: Granted
    listed: Ints | None
    performance: Any

    @property
    def ids(self) -> list[str]:
        """The names of the jobs."""


def sealed(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, read-only from now on."""
    array.flags.writeable = False
    return array


def lend(tables: Lender) -> Lent:
    """The functions over one set of tables; they see what the tables are when they are called."""
    names: dict[str, tuple[str, ...]] = {}
    chains = Chains()

    def floats(column: int, rows: Ints) -> Floats:
        if column in SECRET:
            raise GantlineError("this column is not for policies", where="snapshot")
        return sealed(tables.F[column][rows])

    def matrices(rows: Ints) -> tuple[Floats, Ints]:
        F = tables.F.take(rows, axis=1)
        F[_SECRET] = np.nan
        return F, tables.I.take(rows, axis=1)

    def ids(rows: Ints) -> list[str]:
        known = tables.ids
        return [known[row] for row in rows.tolist()]

    def names_of(kind: str) -> tuple[str, ...]:
        listed = getattr(tables, kind)
        found = names.get(kind)
        if found is None or len(found) != len(listed):
            found = names[kind] = tuple(listed)
        return found

    def devices(row: int) -> tuple[int, ...]:
        grant = tables.granted.get(row)
        if grant is not None and grant.shared:
            return grant.devices
        device, held = int(tables.I[c.HEAD, row]), []
        while device >= 0:
            held.append(device)
            device = int(tables.D[c.D_NEXT, device])
        return tuple(held)

    def listed(rows: Ints) -> Ints:
        return sealed(rows.copy() if tables.listed is None else tables.listed[rows])

    def metric(name: str, rows: Ints) -> Floats:
        column = tables.metrics.get(name)
        return sealed(np.full(len(rows), np.nan) if column is None else column[rows])

    def insider(key: object) -> Any:
        if key is not INSIDER:
            raise GantlineError("the tables are not for policies", where="snapshot", fix="read snapshot.jobs and snapshot.cluster")
        return tables

    return Lent(
        floats=floats,
        ints=lambda column, rows: sealed(tables.I[column][rows]),
        moving=lambda which, rows, now: sealed(moving(tables.F, tables.I, rows, now, which)),
        matrices=matrices,
        ids=ids,
        names=names_of,
        queue_tree=lambda: MappingProxyType(tables.queue_tree),
        windows=lambda: tuple(tables.windows.values()),
        options=lambda: tables.options.frozen(),
        devices=devices,
        held=lambda rows: chains.read(tables.I, tables.D, tables.granted, rows),
        grant=lambda row: tables.granted.get(row),
        listed=listed,
        metric=metric,
        metrics=lambda: tuple(tables.metrics),
        node_floats=lambda column: sealed(tables.NF[column].copy()),
        node_ints=lambda column: sealed(tables.NI[column].copy()),
        device_ints=lambda column: sealed(tables.D[column].copy()),
        node_matrices=lambda: (tables.NF.copy(), tables.NI.copy(), tables.D.copy()),
        cluster=lambda: tables.cluster,
        performance=lambda: tables.performance,
        insider=insider,
    )
