"""How much slower each device is than the usual one of its type, per class of jobs; and the bins that a scheduler sees.

Devices of one model differ, and by how much depends on the application (PAL, SC 2024). A gang goes at the pace of its slowest device,
and slower again by the locality penalty where it spans nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gantline.core.arrays import Floats


@dataclass(frozen=True)
class DeviceSpeeds:
    """Per class of jobs one factor per device, by the device's number: 1.2 means that a step takes 1.2 times as long."""

    slowdown: Mapping[str, Floats]
    bins: Mapping[str, Floats] = field(default_factory=dict)
    """Per class and device the factor of its bin, where the file gives bins; else they are computed."""

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(sorted(self.slowdown))

    @property
    def devices(self) -> int:
        return len(next(iter(self.slowdown.values())))

    def of_gang(self, which: str, devices: list[int], nodes: int, penalty: float) -> float:
        """How many times longer a step takes on these devices."""
        slowest = float(np.max(self.slowdown[which][devices]))
        return slowest * (penalty if nodes > 1 else 1.0)
