"""The classic orders: jobs sorted by a key that is a sum over columns, or by the service that they have received."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.policy import OrderPolicy, param
from gantline.core.snapshot import Snapshot


@dataclass(frozen=True)
class ShortestJobFirst(OrderPolicy):
    """Shortest estimated total run time first; running jobs stay (SJF)."""

    name: ClassVar[str] = "sjf"
    paper: ClassVar[str] = "Conway, Maxwell, Miller: Theory of Scheduling (1967), chapter 3"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    preempt: ClassVar[bool] = False

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.estimate

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


@dataclass(frozen=True)
class ShortestRemainingTimeFirst(OrderPolicy):
    """Least estimated remaining time first, with preemption (SRTF)."""

    name: ClassVar[str] = "srtf"
    paper: ClassVar[str] = "Schrage: Optimality of the Shortest Remaining Processing Time Discipline (Operations Research 1968)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.remaining

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf  # running jobs only move up, so looking again changes nothing


@dataclass(frozen=True)
class ShortestRemainingServiceFirst(OrderPolicy):
    """Least estimated remaining GPU-time first: remaining time times GPUs (SRSF)."""

    name: ClassVar[str] = "srsf"
    paper: ClassVar[str] = "Gu et al.: Tiresias (NSDI 2019), section 3.1"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.remaining * snapshot.jobs.gpus

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf  # as in SRTF


@dataclass(frozen=True)
class SmallestFirst(OrderPolicy):
    """Fewest GPUs first, with preemption (what Tiresias' simulator calls sjf)."""

    name: ClassVar[str] = "smallest"
    paper: ClassVar[str] = "Gu et al.: Tiresias (NSDI 2019), simulator"

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.gpus.astype(np.float64)

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf


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
