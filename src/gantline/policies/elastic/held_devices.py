"""From workers per node to devices: a job keeps those that it has on a node where it stays, and takes others that no job keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.jit import kernel

NamedDevices = dict[int, tuple[int, ...]]  # job -> devices in rank order


@dataclass(frozen=True)
class HeldDevices:
    """The devices that jobs hold now, in rank order, one job after the other."""

    first: Ints  # of each job, and one behind the last
    device: Ints
    owner: Ints

    @staticmethod
    def of(held: Sequence[tuple[int, ...]]) -> HeldDevices:
        count = np.array(list(map(len, held)), dtype=np.int64)
        device = np.array(list(chain.from_iterable(held)), dtype=np.int64)
        return HeldDevices(np.append(0, np.cumsum(count)), device, np.repeat(np.arange(len(held)), count))

    def named(self, layout: Ints, turn: Ints, node: Ints, rooms: Ints, capacity: Ints) -> NamedDevices:
        """The devices of those jobs that do not have them already, for a layout of jobs x nodes.

        ``node`` is the layout's node of every device, ``rooms`` the devices that may be given, node by node, ``capacity`` how many of
        them each node has. What jobs do not keep goes to those that lack devices there, in that ``turn``.
        """
        first = np.append(0, np.cumsum(layout.sum(axis=1)))
        found, other = np.empty(first[-1], dtype=np.int64), np.zeros(len(layout), dtype=np.bool_)
        begins, taken = np.append(0, np.cumsum(capacity)), np.zeros(len(node), dtype=np.bool_)
        write = np.stack((first[:-1], first[1:]))
        _name(layout.copy(), turn, self.first, self.device, node, rooms, begins, taken, write, found, other)
        devices, ends = found.tolist(), first.tolist()
        return {job: tuple(devices[ends[job] : ends[job + 1]]) for job in np.flatnonzero(other & (np.diff(first) > 0)).tolist()}


@kernel
def _name(
    lacking: Ints, turn: Ints, first: Ints, held: Ints, node: Ints, rooms: Ints, begins: Ints, taken: Bools, write: Ints, found: Ints,
    other: Bools,
) -> None:  # fmt: skip
    """Fill ``found`` for each job: ``write`` says from which place on, and its end. ``lacking`` is the layout, less what has been found;
    ``other`` marks jobs that lose a device or get a new one."""
    (jobs, nodes), following, end = lacking.shape, write[0], write[1]
    for job in range(jobs):
        for k in range(first[job], first[job + 1]):
            at = node[held[k]]
            if at >= 0 and lacking[job, at] > 0:
                lacking[job, at] -= 1
                taken[held[k]] = True
                found[following[job]] = held[k]
                following[job] += 1
            else:
                other[job] = True
    for at in range(nodes):
        place = begins[at]
        for job in turn:
            if following[job] == end[job]:
                continue  # as most are before long: it has all that it gets
            while lacking[job, at] > 0:
                while taken[rooms[place]]:
                    place += 1
                found[following[job]] = rooms[place]
                following[job] += 1
                lacking[job, at] -= 1
                place += 1
                other[job] = True
