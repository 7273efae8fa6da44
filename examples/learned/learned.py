"""A learned policy in one file: a weighted sum of what is known of each job decides the order. `train.py` finds the weights.

gantline simulate day --cluster 8x8 --policy examples/learned/learned.yaml
gantline policy check examples/learned/learned.yaml
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline import OrderPolicy, Snapshot
from gantline.lab.environment import JOB_FEATURES, job_features


@dataclass(frozen=True)
class Learned(OrderPolicy):
    """The job with the greatest weighted sum of its features goes first."""

    name: ClassVar[str] = "learned"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    preempt: ClassVar[bool] = False

    weights: tuple[float, ...] = field(default=(), metadata={"help": f"a number for each of {', '.join(JOB_FEATURES)}; empty: zeros"})

    def __post_init__(self) -> None:
        if self.weights and len(self.weights) != len(JOB_FEATURES):
            raise ValueError(f"{len(self.weights)} weights for {len(JOB_FEATURES)} features")

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        # Column by column: a product of matrices may add up equal rows differently, and equal jobs go by their arrival.
        key = np.zeros(len(snapshot.jobs))
        for weight, column in zip(self.weights, job_features(snapshot).T):
            key -= weight * column
        return key

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf  # as in the environment: asked when something happens
