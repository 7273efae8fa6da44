"""Fragments: how much of a node's free GPUs a typical pod could not use (Weng et al., ATC 2023, section 3.2).

A pod that does not fit on the node, by its GPUs, its CPUs or the model that it asks for, can use nothing of it;
neither can a pod without GPUs. One that fits can use the devices that have as much as it asks for. The measure is the
mean over a mix of typical pods: the most frequent shapes, until they make up a share of all. Nodes, shapes and mix
are columns; amounts are in thousandths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.jit import kernel

WHOLE = 1000.0
"""A whole GPU, and a whole CPU."""


class PartNodes(NamedTuple):
    """What is left on each node. Rules write nothing here; `take` does."""

    cpu: Floats
    memory: Floats
    free: Floats  # node x device
    devices: Ints  # how many devices the node has; further columns of `free` mean nothing
    model: Ints
    pods: Ints  # on the node
    kinds: Ints  # node x kind: pods with GPUs on the node, by `kind_of`
    most_pods: int

    @staticmethod
    def idle(cpu: Floats, memory: Floats, devices: Ints, model: Ints, most_pods: int = 2**31) -> PartNodes:
        """Nodes on which nothing runs."""
        widest = max(1, int(devices.max(initial=0)))
        free = np.where(np.arange(widest) < devices[:, None], WHOLE, 0.0)
        count = len(devices)
        kinds = np.zeros((count, widest + 1), dtype=np.int64)
        return PartNodes(cpu.copy(), memory.copy(), free, devices, model, np.zeros(count, dtype=np.int64), kinds, most_pods)


class Shapes(NamedTuple):
    """Different requests: CPU, so many devices, so much of each, and the models that are accepted. No devices: CPUs alone."""

    cpu: Floats
    gpus: Ints
    part: Floats
    accepts: Bools  # shape x model


class TypicalMix(NamedTuple):
    """The pods that are typical, with their shares of all."""

    cpu: Floats
    gpus: Ints
    part: Floats
    accepts: Bools
    share: Floats


USUAL_SHARE = 0.95


class Shape(NamedTuple):
    """A request as it is written: CPU and GPU in thousandths, and the models that it accepts (empty: any)."""

    cpu: float
    part: float
    gpus: int
    models: str = ""


Accepts = Callable[[str], Bools]


def typical_mix(pods: Iterable[Shape], accepts: Accepts, share: float = USUAL_SHARE) -> TypicalMix:
    """Shapes by falling frequency, of equal ones the larger first, until `share` of all pods have one of them."""
    counted = Counter(pods)
    total = sum(counted.values())
    ranked = sorted(((count, shape) for shape, count in counted.items()), reverse=True)
    taken: list[tuple[int, Shape]] = []
    covered = 0
    for count, shape in ranked:
        if covered >= share * total:
            break
        taken.append((count, shape))
        covered += count
    shares = np.array([count / total for count, _ in taken])
    if len(taken) < len(ranked):
        shares = shares / (covered / total)
    columns = shape_columns([shape for _, shape in taken], accepts)
    return TypicalMix(*columns, shares)


def shape_columns(shapes: list[Shape], accepts: Accepts) -> Shapes:
    """Shapes as columns."""
    return Shapes(
        np.array([shape.cpu for shape in shapes], dtype=np.float64),
        np.array([shape.gpus for shape in shapes], dtype=np.int64),
        np.array([shape.part for shape in shapes], dtype=np.float64),
        np.array([accepts(shape.models) for shape in shapes], dtype=np.bool_).reshape(len(shapes), len(accepts(""))),
    )


def accepted_models(models: list[str]) -> Accepts:
    """How a request names models: `V100M16|V100M32`; empty accepts all."""
    return lambda wanted: np.array([not wanted or model in wanted.split("|") for model in models], dtype=np.bool_)


@kernel
def fragments_of(free: Floats, devices: int, cpu: float, model: int, mix: TypicalMix) -> float:
    """The fragments of one node with these free devices and this free CPU.

    The authors add by reason before they add the reasons, and truncate what follows from the sum: hence the six sums.
    """
    room = 0.0
    for d in range(devices):
        room += free[d]
    lack_both, lack_gpu, lack_cpu, no_gpu_asked, no_gpu_and_lack_cpu, no_access = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    if room == 0.0:
        return 0.0
    for m in range(mix.share.size):
        share, part = mix.share[m], mix.part[m]
        enough_cpu = cpu >= mix.cpu[m]
        if mix.gpus[m] == 0:
            if enough_cpu:
                no_gpu_asked += share * room
            else:
                no_gpu_and_lack_cpu += share * room
            continue
        if not mix.accepts[m, model]:
            no_access += share * room
            continue
        fitting, small = 0, 0.0
        for d in range(devices):
            if free[d] >= part:
                fitting += 1
            else:
                small += free[d]
        if fitting < mix.gpus[m]:
            if enough_cpu:
                lack_gpu += share * room
            else:
                lack_both += share * room
        elif not enough_cpu:
            lack_cpu += share * room
        else:
            lack_gpu += share * small
    return lack_both + lack_gpu + lack_cpu + no_gpu_asked + no_gpu_and_lack_cpu + no_access


@kernel
def node_fragments(nodes: PartNodes, node: int, mix: TypicalMix) -> float:
    """The fragments of a node as it is."""
    return fragments_of(nodes.free[node], nodes.devices[node], nodes.cpu[node], nodes.model[node], mix)


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
