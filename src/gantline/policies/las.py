"""Least attained service first: the job that has received least comes first; nothing need be known in advance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.constraints import param
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot


@dataclass(frozen=True)
class LeastAttainedService(OrderPolicy):
    """Least attained service first, as Blox counts it (seconds run) or in GPU-seconds."""

    name: ClassVar[str] = "las"
    paper: ClassVar[str] = "Agarwal et al.: Blox (EuroSys 2024), section 4; Gu et al.: Tiresias (NSDI 2019), section 3.1"

    service: str = field(
        default="time",
        metadata=param("what counts as service: 'time' (seconds run) or 'gpu-time' (GPU-seconds)", one_of=("time", "gpu-time")),
    )

    def key(self, snapshot: Snapshot) -> NDArray[np.float64]:
        return snapshot.jobs.attained if self.service == "time" else snapshot.jobs.attained_gpu

    def order_moves(self) -> bool:
        return True
