"""What a snapshot is lent of the tables: methods that copy out what a policy may know.

A policy must not read the truth (how much work a job really has, when it will really end) and must not write anything, by mistake
least of all. So a snapshot holds no matrix and no view of one: what these methods return is a copy that cannot be
written to.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Cluster
from gantline.core.columns import Column, Device, Job, JobTable, Kind, Table, moving
from gantline.core.errors import GantlineError
from gantline.core.grant import Grant, Granted
from gantline.core.jit import kernel
from gantline.core.options import OptionTable
from gantline.core.queues import Queue

if TYPE_CHECKING:
    from gantline.core.tables import Tables
    from gantline.core.windows import AdvanceWindow


def sealed(array: NDArray[Kind]) -> NDArray[Kind]:
    """The same array, read-only from now on."""
    array.flags.writeable = False
    return array


class Shown(property, Generic[Kind]):
    """A column as policies see it: a copy that is described as the column is."""

    def __init__(self, column: Column[Kind]) -> None:
        super().__init__(lambda owner: owner._read(column), doc=column.what)

    if TYPE_CHECKING:

        def __get__(self, owner: Any, kind: type | None = None) -> NDArray[Kind]: ...  # type: ignore[override]


class Lent:
    """The ways in which a snapshot may read the tables; each says what they are when it is called."""

    __slots__ = ("_chains", "_names", "_tables")

    def __init__(self, tables: Tables) -> None:
        self._tables = tables  # the truth included: `tables_behind` alone reads it
        self._names: dict[str, tuple[str, ...]] = {}
        self._chains = Chains()

    def column(self, column: Column[Kind], rows: Ints | None = None) -> NDArray[Kind]:
        """Of some rows, or of all."""
        if column.secret:
            raise GantlineError("this column is not for policies", where="snapshot")
        tables: dict[type[Table], Table] = {type(one): one for one in (self._tables.jobs, self._tables.nodes, self._tables.devices)}
        values: NDArray[Kind] = getattr(tables[column.table], column.name)
        return sealed(values.copy() if rows is None else values[rows])

    def moving(self, column: Column[np.float64], rows: Ints, now: float) -> Floats:
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
        listed = getattr(self._tables, kind)
        found = self._names.get(kind)
        if found is None or len(found) != len(listed):
            found = self._names[kind] = tuple(listed)
        return found

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
        return self._chains.read(self._tables.I, self._tables.D, self._tables.granted, rows)

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


_UNREAD = -2
_MANY = 1024  # more tuples of rows that are gone are not kept


class Copy(NamedTuple):
    """The chains as they were last read, and room for a reading."""

    head: Ints  # per row
    following: Ints  # per device
    owner: Ints  # per device: the row it was read for
    rows: Ints  # rows to read
    places: Ints  # in `rows`, of those whose devices have changed
    ends: Ints  # of each of these, in `devices`
    devices: Ints


class Chains:
    """The devices of rows as tuples, in rank order; a row whose devices have not changed gets the same tuple again."""

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, ...]] = {}
        self._make(0, 0)

    def _make(self, rows: int, devices: int) -> None:
        by_row, by_device = (np.full((4, size), _UNREAD, dtype=np.int64) for size in (rows, devices))
        self._copy = Copy(by_row[0], by_device[0], by_device[1], by_row[1], by_row[2], by_row[3], by_device[2])
        self._held.clear()

    def read(self, I: Ints, D: Ints, granted: Granted, rows: Ints) -> list[tuple[int, ...]]:
        """The devices that each of these rows holds, its own or shared."""
        copy, held, listed = self._copy, self._held, rows.tolist()
        size = max(I.shape[1], len(listed))
        if size > len(copy.head) or D.shape[1] != len(copy.owner) or len(held) > 2 * len(listed) + _MANY:
            self._make(size, D.shape[1])
            copy = self._copy
        copy.rows[: len(listed)] = rows
        changed = _read(I, D, copy, len(listed))
        if changed:
            self._note(listed, changed, granted)
        found = list(map(held.__getitem__, listed))
        for at in np.flatnonzero(granted.has(rows)).tolist() if granted else ():
            if not found[at] and (grant := granted[listed[at]]).shared:
                found[at] = grant.devices
        return found

    def _note(self, listed: list[int], changed: int, granted: Granted) -> None:
        copy, begin = self._copy, 0
        devices = copy.devices[: copy.ends[changed - 1]].tolist()
        for place, end in zip(copy.places[:changed].tolist(), copy.ends[:changed].tolist()):
            row, own = listed[place], tuple(devices[begin:end])
            grant = granted.made(row)  # a plan that names what was granted is compared sooner if that is the very tuple
            self._held[row] = grant.devices if grant is not None and grant.devices == own else own
            begin = end


@kernel
def _read(I: Ints, D: Ints, copy: Copy, count: int) -> int:
    """How many of the rows have another chain than when they were last read; these are copied."""
    changed = used = 0
    for i in range(count):
        row = copy.rows[i]
        device = I[Job.HEAD, row]
        same = copy.head[row] == device
        while same and device >= 0:
            same = copy.owner[device] == row and copy.following[device] == D[Device.NEXT, device]
            device = D[Device.NEXT, device]
        if same:
            continue
        device = I[Job.HEAD, row]
        copy.head[row] = device
        while device >= 0:
            copy.owner[device], copy.following[device] = row, D[Device.NEXT, device]
            copy.devices[used] = device
            used += 1
            device = D[Device.NEXT, device]
        copy.places[changed], copy.ends[changed] = i, used
        changed += 1
    return changed
