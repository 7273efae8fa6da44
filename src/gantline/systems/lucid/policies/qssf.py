"""Quasi-Shortest-Service-First (Helios, SC 2021, section 4.2): the job with the least predicted GPU time first; running jobs stay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gantline.core.arrays import Floats
from gantline.core.plan import Misfit
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot


@dataclass(frozen=True)
class QuasiShortestServiceFirst(OrderPolicy):
    """Least predicted GPU time first; running jobs stay, and no job passes one that does not fit (QSSF)."""

    name: ClassVar[str] = "qssf"
    paper: ClassVar[str] = "Hu et al.: Characterization and Prediction of Deep Learning Workloads in Large-Scale GPU Datacenters (SC 2021)"
    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    preempt: ClassVar[bool] = False
    misfit: ClassVar[Misfit] = Misfit.STOP

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.estimate * snapshot.jobs.gpus

    def valid_until(self, snapshot: Snapshot) -> float:
        return math.inf
