"""`carbonscaler`: elastic jobs with a deadline grow while the grid is clean (Hanafy et al., SIGMETRICS 2024)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.signal import Signal
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.policies.elastic.pools import Pool, plan_of, pools
from gantline.systems.carbonscaler.policies.cleanest import cleanest
from gantline.systems.carbonscaler.policies.greedy import ServerProfile, greedy
from gantline.systems.carbonscaler.policies.slots import Slots


@dataclass(frozen=True)
class CarbonScaler(Policy):
    """Each job gets its servers in the slots where they do most work per gram, so that it is done by its deadline.

    A job is planned when it comes, on what the plans before it leave, and again when it lags behind its plan or devices were lost.
    One whose deadline cannot be met any more runs as wide as it may.
    """

    name: ClassVar[str] = "carbonscaler"
    paper: ClassVar[str] = (
        "Hanafy et al., CarbonScaler: Leveraging Cloud Workload Elasticity for Optimizing Carbon-Efficiency, SIGMETRICS 2024"
    )
    needs: ClassVar[frozenset[str]] = frozenset({"remaining", "carbon"})

    slack: float = field(
        default=1.0, metadata=about("deadline of a job that has none: so many times its length later than at once", low=0.0, finite=True)
    )
    compat: str = field(
        default="none",
        metadata=about("'none' (the plan of least carbon), 'carbonscaler' (the paper's greedy plan)", one_of=("none", "carbonscaler")),
    )

    def decide(self, snapshot: Snapshot) -> Plan:
        signal, memory = snapshot.facts.grid.carbon, snapshot.memory or {}
        if signal is None:
            raise RefusedError("no carbon intensity is known", where="policy 'carbonscaler'", fix="give --carbon FILE.csv")
        plans, notes, shared = {}, [], []
        for pool in pools(snapshot):
            known = memory.get("plans", {})
            kept = {str(row): known[str(row)] for row in pool.of(snapshot.jobs.rows).tolist() if str(row) in known}
            grants, planned, late = _Desk(self, signal, pool, kept).decide()
            shared.append((pool, grants))
            plans.update(planned)
            notes += [f"job '{snapshot.jobs.ids[job]}' cannot meet its deadline and runs as wide as it may" for job in late]
        until = float(signal.next_step(snapshot.now))
        return plan_of(snapshot, shared, valid_until=until, memory={"plans": plans}, notes=tuple(notes))


class _Desk:
    """One decision for the jobs that compete for one device type."""

    def __init__(self, policy: CarbonScaler, signal: Signal, pool: Pool, known: dict[str, Any]) -> None:
        self.policy, self.signal, self.pool, self.known = policy, signal, pool, known
        facts = pool.snapshot.facts
        self.cost = max(facts.costs.start, facts.costs.resume, facts.costs.resize, facts.costs.move)
        power = facts.grid.power.get(pool.snapshot.cluster.types[pool.kind])
        self.watts = 1.0 if power is None else power.busy
        self.now = pool.snapshot.now

    def decide(self) -> tuple[Ints, dict[str, Any], list[int]]:
        """Devices of each job now, the plans to remember, and the jobs whose deadline was just given up."""
        rows, left = [str(row) for row in self.pool.of(self.pool.snapshot.jobs.rows).tolist()], self._left()
        ends = {row: self._deadline(place, row) for place, row in enumerate(rows)}
        slots = Slots.until(self.signal, self.now, max(ends.values(), default=self.now), self.cost)
        room = np.full(len(slots), self.pool.capacity)
        plans: dict[str, Any] = {}
        late = []
        grants = np.zeros(len(rows), dtype=np.int64)
        for place, row in enumerate(rows):
            work = float(left[place])
            sizes = self._stands(slots, room, place, row, work) or self._anew(slots, room, place, work, ends[row])
            if sizes is None:  # no plan meets the deadline
                if not self.known.get(row, {}).get("late"):
                    late.append(int(self.pool.jobs[place]))
                widest = [size for size in self._profile(place).servers if size <= room[0]]
                sizes = [max(widest, default=0)]
                plans[row] = {"end": ends[row], "late": True}
            else:
                plans[row] = {"end": ends[row], "begin": slots.begin[: len(sizes)].tolist(), "servers": sizes}
            grants[place] = sizes[0]
            room[: len(sizes)] -= sizes
        return grants, plans, late

    def _stands(self, slots: Slots, room: Ints, place: int, row: str, left: float) -> list[int] | None:
        """What is left of the plan of a job, if it still has its room and does all the work."""
        known = self.known.get(row)
        if known is None or "servers" not in known:
            return None
        at = np.searchsorted(np.array(known["begin"]), slots.begin, side="right") - 1
        inside = slots.begin < known["end"]
        sizes = [int(known["servers"][k]) if k >= 0 and ok else 0 for k, ok in zip(at.tolist(), inside.tolist())]
        if (np.array(sizes) > room).any():
            return None
        profile = self._profile(place)
        speed = dict(zip(profile.servers, profile.throughput)) | {0: 0.0}
        if any(size not in speed for size in sizes):
            return None
        jobs = self.pool.snapshot.jobs
        held = int(self.pool.of(jobs.held)[place]) if self.pool.of(jobs.running)[place] else 0
        changed = np.diff(np.array([held, *sizes])) != 0
        done = sum(speed[size] * seconds for size, seconds in zip(sizes, slots.working_until(known["end"], changed).tolist()))
        return sizes if done >= left * (1.0 - 1e-9) else None

    def _anew(self, slots: Slots, room: Ints, place: int, left: float, end: float) -> list[int] | None:
        profile, working = self._profile(place), slots.working_until(end)
        if self.policy.compat == "carbonscaler":
            return greedy(profile, left, slots.carbon, working, room)
        return cleanest(profile, left, slots.carbon, working, room, slots.lasting_until(end))

    def _profile(self, place: int) -> ServerProfile:
        curves = self.pool.curves
        own = slice(int(curves.first[place]), int(curves.first[place + 1]))
        sizes, speeds = curves.size[own].tolist(), curves.rate[own].tolist()
        rising = [k for k in range(len(sizes)) if k == 0 or speeds[k] > max(speeds[:k])]
        return ServerProfile([sizes[k] for k in rising], [speeds[k] for k in rising], [sizes[k] * self.watts for k in rising])

    def _left(self) -> Floats:
        left: Floats = self.pool.of(self.pool.snapshot.jobs.remaining)
        return left

    def _deadline(self, place: int, row: str) -> float:
        """The job's own, or the one that its slack gives it when it comes."""
        jobs = self.pool.snapshot.jobs
        declared = float(self.pool.of(jobs.deadline)[place])
        if declared == declared:
            return declared
        if row in self.known:
            return float(self.known[row]["end"])
        profile, asked = self._profile(place), int(self.pool.of(jobs.gpus)[place])
        if not profile.servers:  # nothing that it could run on is there now
            return self.now + self.signal.step
        speed = max((t for n, t in zip(profile.servers, profile.throughput) if n <= max(asked, profile.servers[0])), default=1.0)
        length = float(self._left()[place]) / speed + 2.0 * self.cost
        return self.now + length * (1.0 + self.policy.slack) + self.signal.step
