"""Tiresias (Gu et al., NSDI 2019): discretised two-dimensional least attained service, with promotion, and the Gittins variant."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.errors import UsageError
from gantline.core.plan import Plan
from gantline.core.policy import LinearKey, OrderPolicy
from gantline.core.snapshot import Snapshot

Floats = NDArray[np.float64]
_LEVEL, _NEVER = 1e12, 1e11  # a queue outweighs any start time; who never started stands behind those who did


@dataclass(frozen=True)
class Tiresias(OrderPolicy):
    """Queues by attained GPU-time; inside a queue, first started first (section 3.2 of the paper)."""

    name: ClassVar[str] = "tiresias"
    paper: ClassVar[str] = "Gu et al.: Tiresias, A GPU Cluster Manager for Distributed Deep Learning (NSDI 2019)"

    limits: tuple[float, ...] = field(default=(3600.0,), metadata={"help": "upper limits of all queues but the last, in GPU-seconds"})
    service: str = field(default="gpu-time", metadata={"help": "what counts: 'gpu-time' (2D) or 'time'"})
    promote: float = field(default=math.inf, metadata={"help": "PROMOTEKNOB: back to the first queue after waiting this many times the time run; inf: never"})

    def __post_init__(self) -> None:
        if any(b <= a for a, b in zip(self.limits, self.limits[1:])) or any(limit <= 0 for limit in self.limits):
            raise UsageError(f"limits {self.limits} do not rise", where=f"policy '{self.name}'", fix="write --set limits=3600,36000")
        if self.promote <= 0:
            raise UsageError(f"promote is {self.promote}", where=f"policy '{self.name}'", fix="use a number above zero, or inf")

    def linear(self) -> LinearKey | None:
        if math.isfinite(self.promote):
            return None  # promotion remembers; only decide() can
        return LinearKey(first_start=1.0, level_by="attained_gpu" if self.service == "gpu-time" else "attained", thresholds=self.limits)

    def _service(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.attained_gpu if self.service == "gpu-time" else snapshot.jobs.attained

    def _start_order(self, snapshot: Snapshot) -> Floats:
        first = snapshot.jobs.first_start
        return np.where(np.isnan(first), _NEVER + snapshot.jobs.arrival, first)

    def key(self, snapshot: Snapshot) -> Floats:
        level = np.searchsorted(np.array(self.limits), self._service(snapshot), side="right")
        return level * _LEVEL + self._start_order(snapshot)

    def valid_until(self, snapshot: Snapshot) -> float:
        """The next demotion of a gang that runs, or would if this plan starts it."""
        jobs, limits = snapshot.jobs, np.array(self.limits)
        service = self._service(snapshot)
        speed = jobs.gpus if self.service == "gpu-time" else np.ones(len(jobs))
        level = np.searchsorted(limits, service, side="right")
        moving = (level < len(limits)) & (speed > 0)
        if not moving.any():
            return math.inf
        return snapshot.now + float(((limits[level[moving]] - service[moving]) / speed[moving]).min())

    def decide(self, snapshot: Snapshot) -> Plan:
        if math.isinf(self.promote):
            return super().decide(snapshot)
        return self._with_promotion(snapshot)

    def _with_promotion(self, snapshot: Snapshot) -> Plan:
        """As above, with service counted since the last promotion; the memory holds that base per promoted job."""
        jobs = snapshot.jobs
        base: dict[str, list[float]] = dict(snapshot.memory or {})
        rows = jobs.rows.tolist()
        service, run = self._service(snapshot), jobs.attained
        gained = np.array([service[i] - base.get(str(r), (0.0, 0.0))[0] for i, r in enumerate(rows)])
        ran = np.array([run[i] - base.get(str(r), (0.0, 0.0))[1] for i, r in enumerate(rows)])
        level = np.searchsorted(np.array(self.limits), gained, side="right")
        promoted = ~jobs.running & (level > 0) & (jobs.waiting >= self.promote * ran)
        for i in np.flatnonzero(promoted):
            base[str(rows[i])] = [float(service[i]), float(run[i])]
        level = np.where(promoted, 0, level)
        alive = {str(r) for r in rows}
        memory = {row: value for row, value in base.items() if row in alive}
        return Plan.rank(level * _LEVEL + self._start_order(snapshot), memory=memory)
