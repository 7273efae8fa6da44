"""Free GPUs and their fragments over time, as jobs with parts of GPUs come and go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.policies.placement.parts.columns import PartNodes, TypicalMix
from gantline.policies.placement.parts.fragments import node_fragments

_WHOLE = 1000.0
_FINE = 1e6  # parts of a thousandth: sums are rounded to it, so that a GPU is whole again when all its parts are given back


class PartChanges(NamedTuple):
    """What is taken from a node (above zero) or given back, a row per device; device -1: CPU alone. In the order of time."""

    time: Floats
    node: Ints
    device: Ints  # counted on its node
    part: Floats
    cpu: Floats

    @staticmethod
    def of(start: Floats, end: Floats, node: Ints, device: Ints, part: Floats, cpu: Floats) -> PartChanges:
        """Those of intervals in which a device, or CPU of a node, is held; at one moment what ends goes first."""
        time, sign = np.concatenate([end, start]), np.repeat([-1.0, 1.0], len(start))
        order = np.argsort(time, kind="stable")
        columns = (np.concatenate([column, column])[order] for column in (node, device))
        amounts = ((np.concatenate([amount, amount]) * sign)[order] for amount in (part, cpu))
        return PartChanges(time[order], *columns, *amounts)


def fragments_over_time(nodes: PartNodes, changes: PartChanges, mix: TypicalMix, begin: float) -> Floats:
    """Rows of time, free GPU and fragments from then on, both in thousandths; the first is of the nodes as they are given, at `begin`.

    A device of which more is held than there is has nothing free.
    """
    out = np.empty((changes.time.size + 1, 3))
    return out[: _sweep(nodes, np.zeros(nodes.free.shape), np.zeros(len(nodes.cpu)), changes, mix, begin, out)]


@kernel
def _sweep(nodes: PartNodes, taken: Floats, fragments: Floats, changes: PartChanges, mix: TypicalMix, begin: float, out: Floats) -> int:
    """Walk through all changes; `taken` of each device and `fragments` of each node are kept on the way. How many rows there are."""
    free, total, written = 0.0, 0.0, 1
    for node in range(nodes.cpu.size):
        fragments[node] = node_fragments(nodes, node, mix)
        total += fragments[node]
        for device in range(nodes.devices[node]):
            free += nodes.free[node, device]
            taken[node, device] = _WHOLE - nodes.free[node, device]
    out[0, 0], out[0, 1], out[0, 2] = begin, free, total
    for at in range(changes.time.size):
        node, device = changes.node[at], changes.device[at]
        nodes.cpu[node] = np.round((nodes.cpu[node] - changes.cpu[at]) * _FINE) / _FINE
        if device >= 0:
            taken[node, device] = np.round((taken[node, device] + changes.part[at]) * _FINE) / _FINE
            left = max(0.0, _WHOLE - taken[node, device])
            free += left - nodes.free[node, device]
            nodes.free[node, device] = left
        now = node_fragments(nodes, node, mix)
        total += now - fragments[node]
        fragments[node] = now
        if at + 1 < changes.time.size and changes.time[at + 1] == changes.time[at]:
            continue
        out[written, 0], out[written, 1], out[written, 2] = changes.time[at], free, total
        written += 1
    return written
