"""CASSINI on top of a host policy: of several placements the one whose jobs fit best on links, and shifts for them to take turns there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.plan import Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.takes import about
from gantline.core.traffic import ITERATION, Traffic
from gantline.models.links.link_flows import Flow
from gantline.models.links.shared_links import PHASE_ERROR, companies, renumbered
from gantline.systems.cassini.policies.affinity import Company, flow_of, judge, pays
from gantline.systems.cassini.policies.candidates import CandidatePlan, candidates_of

COUNTS = ("shifted", "kept", "cyclic", "uncommon", "realigned")


class _Judged(NamedTuple):
    """One placement, the companies on its links, and the mean score of these links."""

    candidate: CandidatePlan
    companies: list[tuple[list[int], tuple[tuple[Flow, ...], tuple[float, ...]], Company]]
    score: float
    cyclic: bool


@dataclass(frozen=True)
class Cassini(Policy):
    """Which jobs run, and with how many devices, is the host policy's; where they go and when they communicate is chosen for the links."""

    name: ClassVar[str] = "cassini"
    names_devices: ClassVar[bool] = True
    paper: ClassVar[str] = "Rajasekaran et al.: CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters (NSDI 2024)"

    host: str = field(default="fifo", metadata={"help": "the policy that says which jobs run: fifo, themis lease=600, ..."})
    candidates: int = field(default=10, metadata=about("placements that are compared", low=1, high=100))
    shifts: bool = field(default=True, metadata={"help": "whether jobs that meet on links are shifted against each other"})
    gain: float = field(default=0.02, metadata=about("mean score that shifts must add", low=0.0, high=1.0))
    tolerance: float = field(
        default=0.05, metadata=about("part of an iteration by which a job may be off before it is aligned anew", above=0.0)
    )
    watch: float = field(default=60.0, metadata=about("seconds between looks at how far shifted jobs are off", above=0.0, unit="seconds"))

    @property
    def needs(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset(self._host().needs)

    def decide(self, snapshot: Snapshot) -> Plan:
        memory, host = snapshot.memory or {}, self._host()
        seen = replace(snapshot, memory=memory.get("host"))
        plan = host.decide(seen)
        judged = [self._judge(snapshot, each) for each in candidates_of(host, plan, seen, self.candidates)]
        sound = [one for one in judged if not one.cyclic]
        best = max(sound or judged[:1], key=lambda one: one.score)
        counts = dict(zip(COUNTS, memory.get("counts", (0,) * len(COUNTS))))
        counts["cyclic"] += len(judged) - len(sound)
        offsets = self._offsets(snapshot, best, counts) if self.shifts else {}
        turns = self._turns(snapshot, offsets, memory.get("turns", {}), counts)
        rows = []
        for grant in best.candidate.grants:
            if grant.job in offsets:
                group, shift = offsets[grant.job]
                shift += turns.get(str(snapshot.jobs.rows[grant.job]), 0.0)
                grant = replace(grant, group=group, mode=Mode.INTERLEAVE, offset=shift)
            rows.append(grant)
        kept = {"host": best.candidate.memory, "counts": [counts[name] for name in COUNTS], "turns": turns}
        until = plan.valid_until
        if until is not None and offsets and np.isfinite(snapshot.jobs.metric(PHASE_ERROR)).any():
            until = min(until, snapshot.now + self.watch)
        return Plan.assign(rows, valid_until=until, memory=kept, notes=self._notes(snapshot, counts))

    def _turns(
        self, snapshot: Snapshot, offsets: dict[int, tuple[int, float]], before: dict[str, float], counts: dict[str, int]
    ) -> dict[str, float]:
        """Seconds on top of shifts, by row: none or one iteration, which is the same phase. A change of it aligns a job anew."""
        error, iteration, found = snapshot.jobs.metric(PHASE_ERROR), snapshot.jobs.metric(ITERATION), dict[str, float]()
        for job in offsets:
            row = str(snapshot.jobs.rows[job])
            found[row] = before.get(row, 0.0)
            if error[job] > self.tolerance:
                found[row] = 0.0 if found[row] else float(iteration[job])
                counts["realigned"] += 1
        return found

    def counted(self, memory: object) -> dict[str, int]:
        return {f"links_{name}": int(count) for name, count in zip(COUNTS, memory["counts"])} if isinstance(memory, dict) else {}

    def _host(self) -> Policy:
        from gantline.policies.registry import inner_policy

        return inner_policy(self.host, self.name, "host")

    def _judge(self, snapshot: Snapshot, candidate: CandidatePlan) -> _Judged:
        """The companies of one placement, and how well they fit."""
        cluster, jobs, devices = snapshot.cluster.description, snapshot.jobs, candidate.places
        traffic = Traffic.read(lambda name, rows: jobs.metric(name), jobs.rows)
        placed = sorted(devices, key=lambda job: int(jobs.rows[job]))
        crossed = [cluster.routes.crossed(devices[job]) if traffic.known[job] else () for job in placed]
        capacity, found = [link.bandwidth for link in cluster.links], []
        for company in companies(crossed):
            flows = []
            for at in company:
                sends = (float(traffic.iteration[placed[at]]), float(traffic.network[placed[at]]), float(traffic.bandwidth[placed[at]]))
                flows.append(flow_of(int(jobs.rows[placed[at]]), *sends, crossed[at]))
            asked = renumbered(flows, capacity)
            found.append(([placed[at] for at in company], asked, judge(*asked)))
        scores = [score for _, _, company in found for score in (company.scores if self.shifts else company.before)]
        return _Judged(candidate, found, float(np.mean(scores)) if scores else 1.0, any(company.cyclic for _, _, company in found))

    def _offsets(self, snapshot: Snapshot, best: _Judged, counts: dict[str, int]) -> dict[int, tuple[int, float]]:
        """Group and shift of every job that is shifted: where that is unique, adds enough to the score and lengthens no mean iteration."""
        found: dict[int, tuple[int, float]] = {}
        for members, asked, company in best.companies:
            counts["uncommon"] += company.uncommon
            if not company.scores or company.cyclic or np.mean(company.scores) - np.mean(company.before) < self.gain:
                continue
            if not pays(*asked, company.shifts):
                counts["kept"] += 1
                continue
            counts["shifted"] += 1
            name = min(int(snapshot.jobs.rows[job]) for job in members)
            found |= {job: (name, shift) for job, shift in zip(members, company.shifts)}
        return found

    def _notes(self, snapshot: Snapshot, counts: dict[str, int]) -> tuple[str, ...]:
        said = []
        if not snapshot.cluster.description.links:
            said.append("the cluster names no links: jobs run as the host policy says")
        if counts["uncommon"]:
            said.append("periods of jobs have no common multiple in the limit: their fit is that of the iterations that were looked at")
        return tuple(said)
