"""How large a batch is and how it is divided: over the replicas, and on each into parts that fit.

The total follows the allocation by one of two rules, or is what the scheduler or a hook asks for, within limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

Follow = Literal["fixed", "replicas"]
_SLIP = 1e-8


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Which batches a job may use.

    ``base`` is the total batch that the learning rate was chosen for. With ``follow="fixed"`` the total stays what it is and the
    replicas share it (as in EDL); with ``"replicas"`` each replica brings ``base`` samples of its own.
    """

    base: int
    most: int = 0  # in all; 0: base where the batch is fixed, else no limit
    local_most: int = 0  # on one replica at once; 0: no limit
    follow: Follow = "fixed"

    def __post_init__(self) -> None:
        if self.base < 1:
            raise ValueError(f"a batch of {self.base} samples makes no step")
        if self.most and self.most < self.base:
            raise ValueError(f"batches from {self.base} to {self.most} are not possible")
        if self.local_most < 0:
            raise ValueError(f"local batches of at most {self.local_most} are not possible")
        if self.follow not in ("fixed", "replicas"):
            raise ValueError(f"a batch follows 'fixed' or 'replicas', not '{self.follow}'")

    def total(self, world: int, asked: int | None = None) -> int:
        """The total batch on so many replicas; ``asked`` is what the scheduler or a hook wants."""
        own = self.base * world if self.follow == "replicas" else self.base
        total = max(own if asked is None else asked, self.base)
        most = self.most or (self.base if self.follow == "fixed" else total)
        return min(total, most)

    def split(self, total: int, world: int) -> tuple[int, int]:
        """The local batch, and the steps without averaging before the one with it (Pollux, OSDI 2021, section 4.1).

        A replica alone with more than the base batch takes two parts at least, to see gradient noise between them.
        """
        local = ceil(total / world - _SLIP)
        steps = max(ceil(local / self.local_most - _SLIP) - 1, 0) if self.local_most else 0
        if world == 1 and total > self.base:
            steps = max(steps, 1)
        share = ceil(local / (steps + 1) - _SLIP)
        if self.most:
            share = min(share, floor(self.most / (world * (steps + 1))))
        return share, steps
