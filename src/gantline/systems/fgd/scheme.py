"""The authors' filling experiment as they ran it: Go's generator, its order of draws, and what their program does at the end of tuning."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.lab.experiment.cluster_filling import FillOrder, FillScheme
from gantline.systems.fgd.go_random import GoRandom

_BEFORE_RANKS = 10
"""Draws between the workload and the ranks of the nodes, found by trial: the scheduler starts there and its informers draw once each."""


@dataclass(frozen=True)
class FgdScheme(FillScheme):
    """Equal to the published runs, seed by seed."""

    def order(self, requests: Ints, part: Floats, target: float, nodes: int, seed: int) -> FillOrder:
        go = GoRandom(seed)
        go.draw()
        order = list(range(len(requests)))
        go.shuffle(order)
        asked = int(requests.sum())
        if asked > target:
            while asked > target:
                asked -= int(requests[order.pop(go.below(len(order)))])
        elif asked > 0:
            pod = go.below(len(requests))
            while asked + part[pod] <= target:  # of one device, not of all: the authors' slip
                order.append(pod)
                asked += int(requests[pod])
                pod = go.below(len(requests))
        for _ in range(_BEFORE_RANKS):
            go.draw()
        ranks = np.array(go.permutation(nodes))
        return FillOrder(np.array(order, dtype=np.int64), np.argsort(ranks))


SCHEME = FgdScheme(published=True, most_cpu=128_000.0, most_gpu=8_000.0, most_pods=1001)
