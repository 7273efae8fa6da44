"""Tiresias (Gu et al., NSDI 2019): discretised two-dimensional least attained service, with promotion, and the Gittins variant."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.plan import Plan
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.interference import INTERFERENCE
from gantline.systems.tiresias.policies.artifact import LIMITS, artifact_plan, gittins_table

_LEVEL, _NEVER = 1e12, 1e11  # a queue outweighs any start time; a job that never started stands behind those that did


@dataclass(frozen=True)
class Tiresias(OrderPolicy):
    """Queues by attained GPU-time; inside a queue, first started first (section 3.2 of the paper)."""

    name: ClassVar[str] = "tiresias"
    paper: ClassVar[str] = "Gu et al.: Tiresias, A GPU Cluster Manager for Distributed Deep Learning (NSDI 2019)"

    limits: tuple[float, ...] = field(
        default=(), metadata={"help": "upper limits of all queues but the last, GPU-seconds; empty: 3600 (regime 'tiresias': 3250,7200)"}
    )
    service: str = field(default="gpu-time", metadata=about("what counts: 'gpu-time' (2D) or 'time'", one_of=("gpu-time", "time")))
    promote: float = field(
        default=math.inf,
        metadata=about("PROMOTEKNOB: back to the first queue after waiting this many times the time run; inf: never", above=0.0),
    )
    gittins: bool = field(default=False, metadata={"help": "inside queues by Gittins index instead of first start (Tiresias-G)"})
    sample: tuple[float, ...] = field(
        default=(), metadata={"help": "GPU-times of past jobs for the Gittins index, or @FILE; empty: log-uniform, 2 min to 70 h"}
    )
    compat: str = field(
        default="auto",
        metadata=about(
            "'none' (the paper), 'tiresias' (its simulator), 'blox' (as released: LAS), 'auto' (by regime)",
            one_of=("auto", "none", "tiresias", "blox"),
        ),
    )
    interference: float = field(default=0.0, metadata=about(INTERFERENCE, low=0.0, below=1.0, unit="a part"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(b <= a for a, b in zip(self.limits, self.limits[1:])) or any(limit <= 0 for limit in self.limits):
            raise UsageError(f"limits {self.limits} do not rise", where=f"policy '{self.name}'", fix="write --set limits=3600,36000")

    def for_regime(self, regime: str) -> Tiresias:
        if self.compat != "auto":
            return self
        return replace(self, compat=regime if regime in {"tiresias", "blox"} else "none")

    def unread(self, regime: str) -> tuple[str, ...]:
        """Blox' Tiresias is LAS; past jobs tell only where ranks are Gittins indices, and interference only in Pollux' simulator."""
        own = ("limits", "service", "promote", "gittins", "sample") if self.compat == "blox" else () if self.gittins else ("sample",)
        return own if regime == "pollux" else (*own, "interference")

    def only_starts(self) -> bool:
        return self.compat != "tiresias"  # whose queues are lists that every event changes, whether a job waits or not

    def order_moves(self) -> bool:
        return True

    def _imitates(self, snapshot: Snapshot) -> str:
        return snapshot.regime if self.compat == "auto" and snapshot.regime in {"tiresias", "blox"} else self.compat

    @property
    def _limits(self) -> Floats:
        return np.array(self.limits or (3600.0,))

    def by_key(self) -> bool:
        return self.compat == "none" and not (math.isfinite(self.promote) or self.gittins)

    def _service(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.attained_gpu if self.service == "gpu-time" else snapshot.jobs.attained

    def _start_order(self, snapshot: Snapshot) -> Floats:
        first = snapshot.jobs.first_start
        return np.where(np.isnan(first), _NEVER + snapshot.jobs.arrival, first)

    def key(self, snapshot: Snapshot) -> Floats:
        level = np.searchsorted(self._limits, self._service(snapshot), side="right")
        return level * _LEVEL + self._start_order(snapshot)

    def valid_until(self, snapshot: Snapshot) -> float:
        """The next demotion of a gang that runs, or would if this plan starts it."""
        jobs, limits = snapshot.jobs, self._limits
        service = self._service(snapshot)
        speed = jobs.gpus if self.service == "gpu-time" else np.ones(len(jobs))
        level = np.searchsorted(limits, service, side="right")
        moving = (level < len(limits)) & (speed > 0)
        if not moving.any():
            return math.inf
        return snapshot.now + float(((limits[level[moving]] - service[moving]) / speed[moving]).min())

    def decide(self, snapshot: Snapshot) -> Plan:
        imitated = self._imitates(snapshot)
        if imitated == "tiresias":
            table = gittins_table(self._sample(), LIMITS[0]) if self.gittins else None
            return artifact_plan(snapshot, self.limits or LIMITS, self.promote, self.service == "gpu-time", table)
        if imitated == "blox":
            return Plan.rank(snapshot.jobs.attained)
        if math.isfinite(self.promote) or self.gittins:
            return self._with_promotion(snapshot)
        return super().decide(snapshot)

    def _sample(self) -> tuple[float, ...]:
        return self.sample or tuple((120.0 * 2.0 ** (k / 100.0)) for k in range(1101))

    def _inside(self, snapshot: Snapshot, level: NDArray[np.int64], gained: Floats) -> Floats:
        """Order inside the queues: first start, or the Gittins index in all queues but the last (section 3.2)."""
        if not self.gittins:
            return self._start_order(snapshot)
        index = gittins_index(np.sort(np.array(self._sample())), gained, self._limits[np.minimum(level, len(self._limits) - 1)])
        return np.where(level < len(self._limits), -index, self._start_order(snapshot))

    def _with_promotion(self, snapshot: Snapshot) -> Plan:
        """As above, with service counted since the last promotion; the memory holds that base per promoted job."""
        jobs = snapshot.jobs
        base: dict[str, list[float]] = dict(snapshot.memory or {})
        rows = jobs.rows.tolist()
        service, run = self._service(snapshot), jobs.attained
        gained = np.array([service[i] - base.get(str(r), (0.0, 0.0))[0] for i, r in enumerate(rows)])
        ran = np.array([run[i] - base.get(str(r), (0.0, 0.0))[1] for i, r in enumerate(rows)])
        level = np.searchsorted(self._limits, gained, side="right")
        promoted = ~jobs.running & (level > 0) & (jobs.waiting >= (self.promote * ran if math.isfinite(self.promote) else math.inf))
        for i in np.flatnonzero(promoted):
            base[str(rows[i])] = [float(service[i]), float(run[i])]
        level = np.where(promoted, 0, level)
        alive = {str(r) for r in rows}
        memory = {row: value for row, value in base.items() if row in alive}
        inside = self._inside(snapshot, level, np.where(promoted, 0.0, gained))
        return Plan.rank(level * _LEVEL + inside, memory=memory)


def gittins_index(sample: Floats, attained: Floats, quantum: Floats) -> Floats:
    """Chance to finish within the quantum over the expected service in it, from an empirical distribution (larger is better)."""
    sums = np.concatenate([[0.0], np.cumsum(sample)])
    n = len(sample)
    first = np.searchsorted(sample, attained, side="right")
    last = np.searchsorted(sample, attained + quantum, side="right")
    alive = np.maximum(n - first, 1)
    done = (last - first) / alive
    served = (sums[last] - sums[first] - attained * (last - first) + quantum * (n - last)) / alive
    return np.where(first < n, done / np.maximum(served, 1e-9), 0.0)
