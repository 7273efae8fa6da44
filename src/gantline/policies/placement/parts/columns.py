"""What rules for parts of GPUs look at, as columns: nodes, the shapes of pods, and a mix of shapes. Amounts are in thousandths."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints

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
