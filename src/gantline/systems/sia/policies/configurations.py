"""Sia's configurations: powers of two within a node, whole nodes beyond it (Sia, SOSP 2023, section 3.3), for any size of node.

Nodes of one GPU type and size are a *class*. A class of N nodes with R GPUs offers 1, 2, 4, ... below R on one node, then 1 to N whole
nodes. So any set of configurations that fits in number also fits on nodes, without splitting one: sizes divide each other. Where R is no
power of two this needs one more bound per power s: configurations of s or more GPUs on a node find room for R // s * s GPUs of each node
only (the paper's virtual nodes, of which a node of 6 is one of 4 and one of 2).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.policies.node_classes import NodeClass


@dataclass(frozen=True, slots=True)
class Configurations:
    """All configurations of a cluster as columns, in the order that settles ties; what each uses of every bound, and the bounds."""

    classes: tuple[NodeClass, ...]
    group: Ints  # class of each column
    nodes: Ints
    gpus: Ints
    regular: Bools  # whether any job may have it; the others are of sizes that rigid or reserved jobs ask for
    use: Floats  # columns x bounds
    bound: Floats

    @staticmethod
    def of(classes: Sequence[NodeClass], sizes: Iterable[int] = ()) -> Configurations:
        """The configurations of the classes, and beside them columns of further sizes."""
        rows, asked = [], set(sizes)
        for k, one in enumerate(classes):
            widths = {r: (k, n, r, 1) for n, r in one.widths()}
            widths |= {r: (k, -(-r // one.size), r, 0) for r in asked - widths.keys() if 0 < r <= one.gpus}
            rows += [widths[r] for r in sorted(widths)]
        group, nodes, gpus, regular = np.array(rows, dtype=np.int64).reshape(-1, 4).T.copy()
        use, bound = _bounds(classes, group, nodes, gpus)
        return Configurations(tuple(classes), group, nodes, gpus, regular == 1, use, bound)

    def __len__(self) -> int:
        return len(self.gpus)

    def find(self, group: int, gpus: int) -> int:
        """The column of so many GPUs of that class; -1 if there is none."""
        found = np.flatnonzero((self.group == group) & (self.gpus == gpus))
        return int(found[0]) if len(found) else -1

    def shape(self, column: int) -> tuple[int, ...]:
        """GPUs on each node, on as few as possible."""
        size, gpus = self.classes[int(self.group[column])].size, int(self.gpus[column])
        whole, rest = divmod(gpus, size)
        return (size,) * whole + ((rest,) if rest else ())


def _bounds(classes: Sequence[NodeClass], group: Ints, nodes: Ints, gpus: Ints) -> tuple[Floats, Floats]:
    """GPUs of each class and, where its nodes are no power of two, the room for each power above the lowest that divides them."""
    uses, bounds = [], []
    for k, one in enumerate(classes):
        mine, power = group == k, 1
        while power <= one.size:
            room = one.size // power * power
            whole = gpus == nodes * one.size
            used = np.where(whole, nodes * room, np.where(gpus >= power, gpus, 0))
            if power == 1 or room < one.size:
                uses.append(np.where(mine, used, 0).astype(np.float64))
                bounds.append(float(room * len(one.nodes)))
            power *= 2
    return np.stack(uses, axis=1) if uses else np.zeros((len(group), 0)), np.array(bounds)
