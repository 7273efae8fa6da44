"""`tiresias`: discretised two-dimensional least attained service, with promotion, and the Gittins variant (Gu et al., NSDI 2019)."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.plan import Plan
from gantline.core.policy import OrderPolicy, parameter
from gantline.core.snapshot import Snapshot
from gantline.policies.interference import INTERFERENCE

# What Tiresias' own simulator does, for runs that must equal it: three queues kept as lists from event to event.
#
# Where it departs from the paper: a job is demoted by at most one queue per event; the next demotion is expected after
# (limit - time run) / GPUs, rounded down, although the limit is in GPU-seconds; the Gittins index uses integer arithmetic and does not
# subtract what was attained.


LIMITS = (3250.0, 7200.0)


def artifact_plan(
    snapshot: Snapshot, limits: tuple[float, ...], promote: float, by_gpu: bool, gittins: list[tuple[float, float]] | None
) -> Plan:
    """One event: update every job in order of arrival, then walk the queues."""
    jobs = snapshot.jobs
    rows = jobs.rows.tolist()
    at = {row: i for i, row in enumerate(rows)}
    blank = {"queues": [[] for _ in range(len(limits) + 1)], "base": {}, "waited": {}, "seen": snapshot.now}
    memory: dict[str, Any] = snapshot.memory or blank
    queues = [[row for row in queue if row in at] for queue in memory["queues"]]
    known = {row: level for level, members in enumerate(queues) for row in members}
    base: dict[str, float] = {k: v for k, v in memory["base"].items() if int(k) in at}
    waited: dict[str, float] = {k: v for k, v in memory["waited"].items() if int(k) in at}
    for row in rows:
        if row not in known:
            queues[0].append(row)
    gpus, run, running = jobs.gpus.tolist(), jobs.attained.tolist(), jobs.running.tolist()
    executed = {row: run[at[row]] - base.get(str(row), 0.0) for row in rows}
    for row in rows:
        if row not in known:
            continue
        level, position = known[row], at[row]
        if running[position]:
            service = executed[row] * gpus[position] if by_gpu else executed[row]
            if level < len(limits) and service >= limits[level]:
                queues[level].remove(row)
                queues[level + 1].append(row)
                known[row] = level + 1
        elif executed[row] > 0.0:
            waited[str(row)] = waited.get(str(row), 0.0) + snapshot.now - memory["seen"]
            if level > 0 and math.isfinite(promote) and waited[str(row)] >= int(executed[row] * promote):
                base[str(row)] = run[position]
                waited[str(row)] = 0.0
                executed[row] = 0.0
                queues[level].remove(row)
                queues[0].append(row)
    if gittins is not None:
        arrival = jobs.arrival
        for queue in queues:
            queue.sort(key=lambda row: (-_index(gittins, executed[row] * gpus[at[row]]), arrival[at[row]]))
    key = np.empty(len(rows))
    room = _Room(snapshot)
    runs: set[int] = set()
    for rank, row in enumerate(row for queue in queues for row in queue):
        key[at[row]] = rank
        if room.take(at[row], gpus[at[row]]):
            runs.add(row)
    jump = math.inf
    for q, queue in enumerate(queues):
        queue.sort(key=lambda row: row not in runs)  # waiting jobs stand behind running ones
        for row in queue:
            if row in runs and q < len(limits):
                left = limits[q] - executed[row]
                jump = min(jump, snapshot.now + (left // gpus[at[row]] if by_gpu else left))
            elif row not in runs and q > 0 and executed[row] > 0.0 and math.isfinite(promote):
                left = float(int(executed[row] * promote - waited.get(str(row), 0.0)))
                if left > 0:
                    jump = min(jump, snapshot.now + left)
    after = {"queues": queues, "base": base, "waited": waited, "seen": snapshot.now}
    return Plan.rank(key, memory=after, valid_until=jump if jump > snapshot.now else math.inf)


class _Room:
    """Devices that are left while the queues are walked, per type; the original has one type."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.jobs, self.free = snapshot.jobs, snapshot.cluster.capacity.tolist()

    def take(self, position: int, gpus: int) -> bool:
        """Whether the job fits on a type that it can use: where it runs already, or else the first that has room."""
        for kind in self._types(position, gpus):
            if gpus <= self.free[kind]:
                self.free[kind] -= gpus
                return True
        return False

    def _types(self, position: int, gpus: int) -> list[int]:
        if len(self.free) == 1:
            return [0]
        listed = [option.type for option in self.jobs.options(position) if option.gpus == gpus]
        return sorted(listed, key=lambda kind: kind != self.jobs.type[position])


@lru_cache(maxsize=8)
def gittins_table(sample: tuple[float, ...], delta: float) -> list[tuple[float, float]]:
    """(GPU-time, index) per sample value, with the artifact's integer arithmetic."""
    data = sorted(int(v) for v in sample)
    n = len(data)
    sums = np.concatenate([[0], np.cumsum(data)])
    table = []
    for value in data:
        after = value - 1
        first = bisect.bisect_right(data, after)
        last = bisect.bisect_right(data, after + delta)
        if last >= n:
            last = n - 1
        chance = _round((last - first) / (n - first), 5)
        expected = int((sums[last] - sums[first] + int(delta) * (n - last)) // (n - first))
        table.append((float(value), _round(chance * 1_000_000 / expected, 4)))
    return table


def _round(value: float, digits: int) -> float:
    """Halves away from zero, as the original's Python 2 does: 1/64 is 0.01563 to five digits."""
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_UP))


def _index(table: list[tuple[float, float]], attained: float) -> float:
    """The index of the first sample value above what was attained; 0 beyond the last."""
    position = bisect.bisect_right(table, (attained, math.inf))
    return table[position][1] if position < len(table) else 0.0


# Tiresias (Gu et al., NSDI 2019): discretised two-dimensional least attained service, with promotion, and the Gittins variant.

_LEVEL, _NEVER = 1e12, 1e11  # a queue outweighs any start time; a job that never started stands behind those that did


@dataclass(frozen=True)
class Tiresias(OrderPolicy):
    """Queues by attained GPU-time; inside a queue, first started first (section 3.2 of the paper)."""

    name = "tiresias"
    paper = "Gu et al.: Tiresias, A GPU Cluster Manager for Distributed Deep Learning (NSDI 2019)"

    limits: tuple[float, ...] = parameter(
        (), "upper limits of all queues but the last, GPU-seconds; empty: 3600 (regime 'tiresias': 3250,7200)"
    )
    service: str = parameter("gpu-time", "what counts: 'gpu-time' (2D) or 'time'", one_of=("gpu-time", "time"))
    promote: float = parameter(
        math.inf, "PROMOTEKNOB: back to the first queue after waiting this many times the time run; inf: never", above=0.0
    )
    gittins: bool = parameter(False, "inside queues by Gittins index instead of first start (Tiresias-G)")
    sample: tuple[float, ...] = parameter((), "GPU-times of past jobs for the Gittins index, or @FILE; empty: log-uniform, 2 min to 70 h")
    compat: str = parameter(
        "auto",
        "'none' (the paper), 'tiresias' (its simulator), 'blox' (as released: LAS), 'auto' (by regime)",
        one_of=("auto", "none", "tiresias", "blox"),
    )
    interference: float = parameter(0.0, INTERFERENCE, low=0.0, below=1.0, unit="a part")

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
