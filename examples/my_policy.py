"""A policy of one's own in one file: shortest first, but whoever waits moves up.

gantline simulate jobs.csv --cluster 8x4 --policy ./my_policy.py:Patient --set patience=2 --round 60
gantline policy check ./my_policy.py:Patient
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline import OrderPolicy, Snapshot, param


@dataclass(frozen=True)
class Patient(OrderPolicy):
    """Least remaining time first; every second of waiting counts as `patience` seconds less."""

    name: ClassVar[str] = "patient"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    patience: float = field(default=1.0, metadata=param("seconds taken off the remaining time per second of waiting", low=0.0))

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        return snapshot.jobs.remaining - self.patience * snapshot.jobs.waiting
