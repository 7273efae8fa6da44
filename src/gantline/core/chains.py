"""Which row holds which devices, read for many rows at once: a gang that shares none is a chain through the device table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Device, Job
from gantline.core.granted import Granted
from gantline.core.jit import kernel

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
