"""Seats for parts of GPUs by the rules of FGD and its baselines, for policies that share devices (Weng et al., ATC 2023).

The typical mix is that of the jobs that are in the cluster now, waiting or running.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.options import Option
from gantline.core.snapshot import Snapshot
from gantline.policies.placement.parts.columns import WHOLE, PartNodes, Shapes, TypicalMix
from gantline.policies.placement.parts.filling import Arrivals, fill
from gantline.policies.placement.parts.scores import PART_RULES, Scoring
from gantline.policies.placement.parts.typical import Shape, shape_columns, typical_mix

_DECIMALS = 6  # of a thousandth: sums of parts are rounded to it, so that 0.7 fits beside 0.1 and 0.2


class PartSeats:
    """A rule on the nodes of a snapshot."""

    def __init__(self, rule: str, snapshot: Snapshot, shapes: list[Shape]) -> None:
        cluster, nodes = snapshot.cluster, snapshot.cluster.node_type
        self._node = cluster.device_node
        self._first = np.searchsorted(self._node, np.arange(len(nodes)))
        self._count: Ints = np.bincount(self._node, minlength=len(nodes)).astype(np.int64)
        self._model = nodes.astype(np.int64)
        self._accepted: dict[str, Bools] = {}
        self._mix: TypicalMix = typical_mix(shapes, self._accepts)
        self._given = np.zeros((len(nodes), max(1, int(self._count.max(initial=1))) + 1), dtype=np.int64)  # node x kind: jobs
        self._behind = np.zeros_like(self._given)
        widest = np.arange(self._given.shape[1] - 1)
        self._there: Bools = widest < self._count[:, None]  # node x place: whether the node has so many devices
        self._device: Ints = np.where(self._there, self._first[:, None] + widest, 0)
        self._nodes = PartNodes.idle(np.zeros(len(nodes)), np.zeros(len(nodes)), self._count, self._model)  # written anew for each search
        self._arrival = Arrivals(np.zeros(1, dtype=np.int64), np.zeros(1), np.zeros((2, 1)))
        self._shapes: dict[Shape, Shapes] = {}
        self._draw = snapshot.rng("parts of GPUs")
        most = WHOLE * float(self._count.max(initial=1))
        self._scoring = Scoring(PART_RULES[rule], False, max(WHOLE, WHOLE * float(cluster.node_cpus_free.max(initial=1.0))), most)

    @property
    def widest(self) -> int:
        """GPUs of the largest node."""
        return int(self._count.max(initial=0))

    def count(self, owner: Ints, device: Ints, demand: Floats, *, given: int = 0, behind: int = 0) -> None:
        """So many more of these jobs, a row for each of their devices, have been given them, or hold them and have not had their turn.

        Rules that keep kinds together, or fill nodes in use first, look at that.
        """
        pairs, devices = np.unique(owner * len(self._count) + self._node[device], return_counts=True)
        job, node = np.divmod(pairs, len(self._count))
        kind = np.where(demand[job] >= 1.0, devices, 0)
        np.add.at(self._given, (node, kind), given)
        np.add.at(self._behind, (node, kind), behind)

    def find(self, option: Option, demand: float, open_to: Bools, fill_of: Floats, cpus: Floats, *, evict: bool) -> list[int] | None:
        """Devices for a job on one node: one of which it takes a part, or whole ones; None: no node has room.

        `fill_of` says how much of each device is taken, `open_to` which may be used at all, and have what else the job needs beside them;
        `evict`: jobs that have not had their turn do not count.
        """
        free = np.where(open_to, np.round(WHOLE * (1.0 - fill_of), _DECIMALS), 0.0)
        nodes = self._nodes
        nodes.cpu[:] = WHOLE * cpus
        nodes.free[:] = np.where(self._there, free[self._device], 0.0)
        nodes.kinds[:] = self._given if evict else self._given + self._behind
        nodes.pods[:] = nodes.kinds.sum(axis=1)
        shape = Shape(WHOLE * option.cpus * option.gpus, np.round(WHOLE * demand, _DECIMALS), option.gpus, str(option.type))
        if shape not in self._shapes:
            self._shapes[shape] = shape_columns([shape], self._accepts)
        self._arrival.draw[:] = self._draw.random((2, 1))
        found = fill(self._scoring, nodes, self._arrival, self._shapes[shape], self._mix)
        node = int(found.node[0])
        if node < 0:
            return None
        first = int(self._first[node])
        if found.device[0] >= 0:
            return [first + int(found.device[0])]
        return [first + device for device in range(int(self._count[node])) if free[first + device] >= WHOLE][: option.gpus]

    def _accepts(self, models: str) -> Bools:
        if models not in self._accepted:
            kinds = range(int(self._model.max(initial=0)) + 1)
            named = {int(kind) for kind in models.split("|")} if models else {*kinds}
            self._accepted[models] = np.array([kind in named for kind in kinds], dtype=np.bool_)
        return self._accepted[models]
