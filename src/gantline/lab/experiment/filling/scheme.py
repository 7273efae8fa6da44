"""In which order pods come and nodes are looked at, and how scores are counted: ours, or that of a published experiment.

A system brings its own under the kind `fillings` of its manifest: ``fillings={"fgd": ".scheme:SCHEME"}``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.registry import Register

_SCHEMES = Register("fillings", {}, where="--compat")


class FillOrder(NamedTuple):
    """Pods by their place in the list, some more than once or not at all; nodes from the one that wins ties on."""

    pods: Ints
    nodes: Ints


@dataclass(frozen=True)
class FillScheme:
    """Pods are shuffled and then drawn until they ask for what is wanted; nodes stay in the order of their names; scores are real."""

    published: bool = False
    """Whether scores are those of the published program."""
    most_cpu: float = 0.0
    """What CPU is measured by, in thousandths; 0: the CPU of the largest node."""
    most_gpu: float = 0.0
    most_pods: int = 2**31

    def order(self, requests: Ints, part: Floats, target: float, nodes: int, seed: int) -> FillOrder:
        """`requests` are the GPU of each pod in all, `part` that of one of its devices; `target` is what all pods shall ask for."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(requests))
        asked = int(requests.sum())
        if asked > target:
            keep = int(np.searchsorted(np.cumsum(requests[order]), target, side="right"))
            return FillOrder(order[:keep], np.arange(nodes))
        drawn = []
        while asked:
            pod = int(rng.integers(len(requests)))
            asked += int(requests[pod])
            if asked > target:
                break
            drawn.append(pod)
        return FillOrder(np.concatenate([order, np.array(drawn, dtype=np.int64)]), np.arange(nodes))


def find_scheme(name: str) -> FillScheme:
    """The scheme of that name; empty: ours."""
    found: FillScheme = _SCHEMES.load(name) if name else FillScheme()
    return found
