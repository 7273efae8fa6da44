"""Six rules for parts of GPUs: how well a node suits a pod, from 0 to 100, and which of its devices a pod with a part gets.

FGD and the five rules that its authors hold it against (Weng et al., ATC 2023, sections 4 and 6.1). `Scoring.published` counts as the
authors' program does: scores cut to whole numbers, a dot product that prefers the node with the *least* alignment, and a packing that
takes a node on which only CPUs are in use for an idle one. Without it scores are real numbers and these three are repaired.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gantline.core.arrays import Floats
from gantline.core.jit import kernel
from gantline.policies.placement.parts.fragments import PartNodes, Shapes, TypicalMix, fragments_of

FGD, BEST_FIT, DOT_PRODUCT, CLUSTERING, PACKING, RANDOM = range(6)
PART_RULES = {"fgd": FGD, "bestfit": BEST_FIT, "dotprod": DOT_PRODUCT, "clustering": CLUSTERING, "packing": PACKING, "random": RANDOM}

NOISE = 1e-6
"""Scores that differ by less are equal: what remains is how sums were rounded."""
_WHOLE = 1000.0
_GRADIENT = 1000.0
"""The change of fragments at which the sigmoid of FGD has its unit, in thousandths of a GPU."""


class Scoring(NamedTuple):
    """A rule, and by what it measures: the CPU and the GPUs of the largest node."""

    rule: int
    published: bool
    most_cpu: float
    most_gpu: float


@kernel
def kind_of(gpus: int, part: float) -> int:
    """Pods of one kind are clustered: parts of a GPU (0), or so many whole ones."""
    return gpus if part >= _WHOLE else 0


@kernel
def fits(nodes: PartNodes, node: int, shapes: Shapes, shape: int) -> bool:
    """Whether the node has what the shape asks for; memory is looked at elsewhere."""
    if nodes.cpu[node] < shapes.cpu[shape] or nodes.pods[node] >= nodes.most_pods:
        return False
    gpus, part = shapes.gpus[shape], shapes.part[shape]
    if gpus == 0:
        return True
    if not shapes.accepts[shape, nodes.model[node]]:
        return False
    fitting = 0
    for d in range(nodes.devices[node]):
        if nodes.free[node, d] >= part:
            fitting += 1
    return bool(fitting >= gpus)


@kernel
def fullest_device(nodes: PartNodes, node: int, part: float) -> int:
    """The device that is left with least; the lowest of equal ones. -1: none has enough."""
    best, least = -1, math.inf
    for d in range(nodes.devices[node]):
        if part <= nodes.free[node, d] < least:
            best, least = d, nodes.free[node, d]
    return best


@kernel
def score(
    scoring: Scoring, nodes: PartNodes, node: int, shapes: Shapes, shape: int, mix: TypicalMix, before: float, work: Floats
) -> tuple[float, int]:
    """How well a node on which the shape fits suits it, and the device of a pod with a part (-1: the first whole ones).

    `before` are the fragments of the node, `work` is room for its devices.
    """
    rule, gpus, part = scoring.rule, shapes.gpus[shape], shapes.part[shape]
    if rule == FGD:
        return _less_fragments(scoring, nodes, node, shapes, shape, mix, before, work)
    device = fullest_device(nodes, node, part) if gpus == 1 and part < _WHOLE else -1
    if rule == BEST_FIT or rule == DOT_PRODUCT:
        cpu, wanted, room = nodes.cpu[node], gpus * part, 0.0
        for d in range(nodes.devices[node]):
            room += nodes.free[node, d]
        if rule == BEST_FIT:
            found = 100.0 * (1.0 - (0.5 * (cpu - shapes.cpu[shape]) / scoring.most_cpu + 0.5 * (room - wanted) / scoring.most_gpu))
            return (float(int(found)) if scoring.published else found), device
        product = (cpu / scoring.most_cpu) * (shapes.cpu[shape] / scoring.most_cpu) + (room / scoring.most_gpu) * (
            wanted / scoring.most_gpu
        )
        if scoring.published:
            return float(int(100.0 * (1.0 - 0.5 * product))), device
        return 100.0 * 0.5 * product, device
    if gpus == 0:
        return 0.0, -1
    if rule == CLUSTERING:
        return _clustered(scoring, nodes, node, kind_of(gpus, part)), device
    if rule == PACKING:
        return _packed(scoring, nodes, node, gpus, device), device
    return 0.0, device


@kernel
def _less_fragments(
    scoring: Scoring, nodes: PartNodes, node: int, shapes: Shapes, shape: int, mix: TypicalMix, before: float, work: Floats
) -> tuple[float, int]:
    """FGD: by how much the fragments of the node would fall."""
    gpus, part, devices = shapes.gpus[shape], shapes.part[shape], nodes.devices[node]
    cpu, model = nodes.cpu[node] - shapes.cpu[shape], nodes.model[node]
    for d in range(devices):
        work[d] = nodes.free[node, d]
    if gpus != 1 or part >= _WHOLE:
        missing = gpus
        for d in range(devices):
            if missing > 0 and work[d] >= part:
                work[d] -= part
                missing -= 1
        return _sigmoid(before - fragments_of(work, devices, cpu, model, mix), scoring.published), -1
    best, chosen = -1.0, -1
    for d in range(devices):
        had = nodes.free[node, d]
        if had < part:
            continue
        seen = False  # a device with as much as an earlier one leads to the same fragments
        for other in range(d):
            seen = seen or nodes.free[node, other] == had
        if seen:
            continue
        work[d] = had - part
        found = _sigmoid(before - fragments_of(work, devices, cpu, model, mix), scoring.published)
        work[d] = had
        if found > best + NOISE:
            best, chosen = found, d
    return best, chosen


@kernel
def _sigmoid(fall: float, published: bool) -> float:
    found = 100.0 * (1.0 / (1.0 + math.exp(-fall / _GRADIENT)))
    return float(int(found)) if published else found


@kernel
def _clustered(scoring: Scoring, nodes: PartNodes, node: int, kind: int) -> float:
    """Pods of one kind together; of equal nodes the fullest."""
    room = 0.0
    for d in range(nodes.devices[node]):
        room += nodes.free[node, d]
    used = 25.0 * (scoring.most_gpu - room) / scoring.most_gpu
    if scoring.published:
        used = float(math.floor(used))
    others = False
    for other in range(nodes.kinds.shape[1]):
        others = others or (other != kind and nodes.kinds[node, other] > 0)
    if nodes.kinds[node, kind] > 0:
        return used + (50.0 if others else 75.0)
    return used + (0.0 if others else 25.0)


@kernel
def _packed(scoring: Scoring, nodes: PartNodes, node: int, gpus: int, device: int) -> float:
    """Devices in use first, then idle ones of nodes in use, then idle nodes, the smallest first."""
    idle, devices = 0, nodes.devices[node]
    for d in range(devices):
        if nodes.free[node, d] >= _WHOLE:
            idle += 1
    if idle == devices and (scoring.published or nodes.pods[node] == 0):
        return max(33.0 - idle, float(idle) if scoring.published else 0.0)
    if device < 0:
        return max(50.0 - gpus, 33.0)
    had = float(nodes.free[node, device])
    if had >= _WHOLE:
        return 49.0
    if scoring.published:
        return max(100.0 - math.floor(math.floor(had / 10.0) / 10.0), 50.0)
    return 100.0 - had / 100.0
