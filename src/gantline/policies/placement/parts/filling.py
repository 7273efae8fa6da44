"""Filling nodes with pods that never leave: each goes to the node that suits it best, or fails.

What suits a shape on a node changes only when the node changes, so scores are kept per shape and node and counted again where a pod has
come since.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel
from gantline.policies.placement.parts.fragments import PartNodes, Shapes, TypicalMix, node_fragments
from gantline.policies.placement.parts.scores import NOISE, RANDOM, Scoring, fits, kind_of, score

_MISFIT = -1.0
_WHOLE = 1000.0


class Arrivals(NamedTuple):
    """Pods in the order in which they come; `draw` are two numbers from 0 to 1 for a rule that draws."""

    shape: Ints
    memory: Floats
    draw: Floats  # 2 x pod


class KeptScores(NamedTuple):
    """Scores and devices per shape and node, and at which change of the node they were counted; the fragments of each node."""

    score: Floats
    device: Ints
    seen: Ints
    changes: Ints
    fragments: Floats
    work: Floats

    @staticmethod
    def room(nodes: PartNodes, shapes: Shapes) -> KeptScores:
        size = (len(shapes.cpu), len(nodes.cpu))
        count = len(nodes.cpu)
        return KeptScores(
            np.zeros(size), np.zeros(size, dtype=np.int64), np.full(size, -1, dtype=np.int64), np.zeros(count, dtype=np.int64),
            np.zeros(count), np.zeros(nodes.free.shape[1]),
        )  # fmt: skip


class Filled(NamedTuple):
    """What became of each pod (node -1: it failed), and after it the GPU in use and the fragments of all nodes."""

    node: Ints
    device: Ints
    used: Floats
    fragments: Floats

    @staticmethod
    def room(pods: int) -> Filled:
        return Filled(np.full(pods, -1, dtype=np.int64), np.full(pods, -1, dtype=np.int64), np.zeros(pods), np.zeros(pods))


def fill(scoring: Scoring, nodes: PartNodes, arrivals: Arrivals, shapes: Shapes, mix: TypicalMix, tie: float = NOISE) -> Filled:
    """Place all pods in turn. Of nodes whose scores differ by no more than `tie` from the best the first is taken."""
    filled = Filled.room(len(arrivals.shape))
    _fill(scoring, nodes, arrivals, shapes, mix, tie, KeptScores.room(nodes, shapes), filled)
    return filled


@kernel
def _fill(
    scoring: Scoring, nodes: PartNodes, arrivals: Arrivals, shapes: Shapes, mix: TypicalMix, tie: float, kept: KeptScores, filled: Filled
) -> None:
    used, count = 0.0, nodes.cpu.size
    for node in range(count):
        kept.fragments[node] = node_fragments(nodes, node, mix)
    for pod in range(arrivals.shape.size):
        shape, memory = arrivals.shape[pod], arrivals.memory[pod]
        best, chosen, fitting = _MISFIT, -1, 0
        for node in range(count):
            if kept.seen[shape, node] != kept.changes[node]:
                _look(scoring, nodes, node, shapes, shape, mix, kept)
            found = kept.score[shape, node]
            if found > _MISFIT and nodes.memory[node] >= memory:
                fitting += 1
                if found > best:
                    best, chosen = found, node
        if fitting > 1:
            chosen = _drawn(kept, nodes, arrivals, pod) if scoring.rule == RANDOM else _first(kept, nodes, shape, memory, best - tie)
        if chosen >= 0:
            device = _device(scoring, nodes, arrivals, shapes, pod, chosen, kept.device[shape, chosen])
            take(nodes, chosen, shapes, shape, memory, device)
            used += shapes.gpus[shape] * shapes.part[shape]
            kept.changes[chosen] += 1
            kept.fragments[chosen] = node_fragments(nodes, chosen, mix)
            filled.node[pod], filled.device[pod] = chosen, device
        total = 0.0
        for node in range(count):
            total += kept.fragments[node]
        filled.used[pod], filled.fragments[pod] = used, total


@kernel
def _look(scoring: Scoring, nodes: PartNodes, node: int, shapes: Shapes, shape: int, mix: TypicalMix, kept: KeptScores) -> None:
    """Count the score of a shape on a node again."""
    kept.seen[shape, node] = kept.changes[node]
    kept.score[shape, node] = _MISFIT
    if fits(nodes, node, shapes, shape):
        found, device = score(scoring, nodes, node, shapes, shape, mix, kept.fragments[node], kept.work)
        kept.score[shape, node] = found
        kept.device[shape, node] = device


@kernel
def _first(kept: KeptScores, nodes: PartNodes, shape: int, memory: float, least: float) -> int:
    """The first node with at least this score."""
    for node in range(nodes.cpu.size):
        if kept.score[shape, node] > _MISFIT and kept.score[shape, node] >= least and nodes.memory[node] >= memory:
            return node
    return -1


@kernel
def _drawn(kept: KeptScores, nodes: PartNodes, arrivals: Arrivals, pod: int) -> int:
    """One of the nodes on which the pod fits, each as likely as the others."""
    shape, memory = arrivals.shape[pod], arrivals.memory[pod]
    fitting = 0
    for node in range(nodes.cpu.size):
        fitting += 1 if kept.score[shape, node] > _MISFIT and nodes.memory[node] >= memory else 0
    left = int(arrivals.draw[0, pod] * fitting)
    for node in range(nodes.cpu.size):
        if kept.score[shape, node] > _MISFIT and nodes.memory[node] >= memory:
            if left == 0:
                return node
            left -= 1
    return -1


@kernel
def _device(scoring: Scoring, nodes: PartNodes, arrivals: Arrivals, shapes: Shapes, pod: int, node: int, usual: int) -> int:
    """The device of a pod with a part: as its score says, or drawn."""
    part = shapes.part[arrivals.shape[pod]]
    if scoring.rule != RANDOM or usual < 0:
        return usual
    fitting = 0
    for d in range(nodes.devices[node]):
        fitting += 1 if nodes.free[node, d] >= part else 0
    left = int(arrivals.draw[1, pod] * fitting)
    for d in range(nodes.devices[node]):
        if nodes.free[node, d] >= part:
            if left == 0:
                return d
            left -= 1
    return usual


@kernel
def take(nodes: PartNodes, node: int, shapes: Shapes, shape: int, memory: float, device: int) -> None:
    """Put a pod on a node: on this device, or (-1) on the first whole ones."""
    gpus, part = shapes.gpus[shape], shapes.part[shape]
    nodes.cpu[node] -= shapes.cpu[shape]
    nodes.memory[node] -= memory
    nodes.pods[node] += 1
    if gpus == 0:
        return
    nodes.kinds[node, kind_of(gpus, part)] += 1
    if device >= 0:
        nodes.free[node, device] -= part
        return
    missing = gpus
    for d in range(nodes.devices[node]):
        if missing > 0 and nodes.free[node, d] >= _WHOLE:
            nodes.free[node, d] = 0.0
            missing -= 1
