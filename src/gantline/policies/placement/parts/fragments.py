"""Fragments: how much of a node's free GPUs a typical pod could not use (Weng et al., ATC 2023, section 3.2).

A pod that does not fit on the node, by its GPUs, its CPUs or the model that it asks for, can use nothing of it; neither can a pod without
GPUs. One that fits can use the devices that have as much as it asks for. The measure is the mean over a mix of typical pods.
"""

from __future__ import annotations

from gantline.core.arrays import Floats
from gantline.core.jit import kernel
from gantline.policies.placement.parts.columns import PartNodes, TypicalMix


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
