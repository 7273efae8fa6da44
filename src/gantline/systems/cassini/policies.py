"""`cassini`: on top of a host policy, the placement whose jobs fit best on links, and shifts for them to take turns there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from gantline.core.columns import FREE
from gantline.core.errors import UsageError
from gantline.core.host_resources import amounts_beside
from gantline.core.plan import Assignment, Misfit, Mode, Plan, Ranking
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.core.topology import ITERATION, Traffic
from gantline.models.links.link_flows import Flow
from gantline.models.links.shared_links import (
    PHASE_ERROR,
    Fit,
    best_shifts,
    circle_of,
    fluid_times,
    link_groups,
    own_phase,
    renumbered,
    score_of,
)
from gantline.policies.drawn_places import GangNeed, Places, drawn_places
from gantline.policies.registry import inner_policy

# The affinity graph: which jobs meet on which links, how well they fit there, and one shift per job that suits all links.
#
# Rajasekaran et al., "CASSINI" (NSDI 2024): jobs and the links that at least two of them cross are the two sides of a
# graph. The best shifts on a link hold relative to one another, so a walk from link to link gives every job one shift,
# which is unique where the graph has no cycle. Links that the same jobs cross are one vertex here, the narrowest of
# them: two jobs over the same two uplinks are no cycle.


class LinkGroup(NamedTuple):
    """Jobs that meet, directly or through others: their shifts, the scores of their links, and whether the shifts are unique."""

    shifts: tuple[float, ...]
    scores: tuple[float, ...]  # with the shifts, per link that is shared
    before: tuple[float, ...]  # without
    cyclic: bool
    uncommon: int  # links whose jobs have no common period in the limit


_fit = lru_cache(maxsize=1 << 12)(best_shifts)


@lru_cache(maxsize=1 << 12)
def judge(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> LinkGroup:
    """How well the jobs of one group fit on their links; `Flow.shift` is where each would begin by itself."""
    narrowest: dict[tuple[int, ...], int] = {}
    for link, most in enumerate(capacity):
        users = tuple(at for at, flow in enumerate(flows) if link in flow.links)
        if len(users) > 1 and most < capacity[narrowest.get(users, link)] * (1.0 + (users not in narrowest)):
            narrowest[users] = link
    fits, before = {}, []
    for users, link in narrowest.items():
        circles = tuple(circle_of(flows[at], capacity[link]) for at in users)
        before.append(score_of(circles, capacity[link]))
        fits[users] = _fit(tuple(one._replace(shift=0.0) for one in circles), capacity[link])
    cyclic = sum(map(len, narrowest)) > len(flows) + len(narrowest) - 1  # more edges than a tree has; a job alone is a tree
    shifts = _walk(flows, fits)
    return LinkGroup(shifts, tuple(fit.score for fit in fits.values()), tuple(before), cyclic, sum(not fit.common for fit in fits.values()))


def _walk(flows: tuple[Flow, ...], fits: dict[tuple[int, ...], Fit]) -> tuple[float, ...]:
    """Breadth first from the first job, at zero: over a link from job j to job k, t_k = t_j - t_j on the link + t_k on the link."""
    found: dict[int, float] = {}
    for first in sorted({at for users in fits for at in users}):
        if first in found:
            continue
        found[first], queue = 0.0, deque([first])
        while queue:
            here = queue.popleft()
            for users, fit in fits.items():
                if here not in users:
                    continue
                mine = fit.shifts[users.index(here)]
                for there, theirs in zip(users, fit.shifts):
                    if there not in found:
                        found[there] = (found[here] - mine + theirs) % (flows[there].compute + flows[there].network)
                        queue.append(there)
    return tuple(found.get(at, 0.0) for at in range(len(flows)))


def pays(flows: tuple[Flow, ...], capacity: tuple[float, ...], shifts: tuple[float, ...]) -> bool:
    """Whether the mean iteration, links divided fairly, is no longer with these shifts than without."""
    shifted = tuple(flow._replace(shift=shift) for flow, shift in zip(flows, shifts))
    return bool(np.mean(fluid_times(shifted, capacity)) <= np.mean(fluid_times(flows, capacity)) * (1.0 + 1e-9))


def flow_of(row: int, iteration: float, network: float, bandwidth: float, links: tuple[int, ...]) -> Flow:
    """A job where it begins by itself."""
    return Flow(iteration - network, network, bandwidth, links, own_phase(row) * iteration)


# Where the jobs that a host policy starts may go: several placements with the same jobs and the same numbers of devices.
#
# A host that names devices offers its own (`Policy.alternatives`). For others they are drawn: the first is the plain
# one (the tightest node, else the tightest rack, else as few racks as may be), and the rest are as compact.


class CandidatePlan(NamedTuple):
    """One placement: what each job gets, with its devices where they are named, and the host's memory that goes with it."""

    grants: list[Assignment]
    memory: object

    @property
    def places(self) -> Places:
        return {grant.job: tuple(grant.devices) for grant in self.grants if grant.devices}


def candidates_of(host: Policy, plan: Plan, snapshot: Snapshot, count: int) -> list[CandidatePlan]:
    """Up to so many placements, the host's own first: those that it offers where it names devices, else such as are drawn."""
    grants = plan.assignments
    if grants is not None and grants.has("devices") and grants.plain_rows("devices").all():
        offered = [plan, *host.alternatives(snapshot, plan, count - 1)][:count]
        return [CandidatePlan(list(each.assignments or ()), each.memory) for each in offered]
    if plan.ranking is not None:
        return _drawn(snapshot, _walked(plan.ranking, snapshot), count, plan.memory)
    if grants is not None and grants.plain_rows().all():
        chosen = [_chosen(snapshot, item.job, max(item.option, 0), item.type, item.gpus) for item in grants]
        return _drawn(snapshot, chosen, count, plan.memory)
    what = f"'{host.name}' says more than which jobs run on how many devices, or on which"
    raise UsageError(what, where="policy 'cassini'", fix="--set host=fifo, srtf, las, tiresias, themis, ...")


class _HostChoice(NamedTuple):
    """A job that the host policy lets run: its position, option (below zero: the one in use), device type and number of devices."""

    job: int
    option: int
    type: int
    gpus: int
    placed: bool  # whether candidates place it; the engine does otherwise


def _drawn(snapshot: Snapshot, chosen: list[_HostChoice], count: int, memory: object) -> list[CandidatePlan]:
    """Placements with the devices of every job for which there is room; jobs that run stay where they are."""
    cluster, jobs = snapshot.cluster, snapshot.jobs
    stay = {one.job: jobs.devices(one.job) for one in chosen if jobs.running[one.job] and len(jobs.devices(one.job)) == one.gpus}
    leaves = {d for job in np.flatnonzero(jobs.running).tolist() if job not in stay for d in jobs.devices(job)}
    free = [d for d in np.flatnonzero(cluster.device_open).tolist() if cluster.device_holder[d] == FREE or d in leaves]
    fresh = [GangNeed(one.job, one.type, one.gpus) for one in chosen if one.job not in stay and one.placed]
    found: list[Places] = []
    for number in range(count if fresh else 1):
        draw = snapshot.rng(f"candidate {number}") if number else None
        places = stay | drawn_places(snapshot, free, fresh, draw)
        if places not in found:
            found.append(places)
    return [CandidatePlan([grant for one in chosen if (grant := _grant(one, places)) is not None], memory) for places in found]


def _grant(one: _HostChoice, places: Places) -> Assignment | None:
    """What a job gets on these places; None: there is no room for it beside those before it."""
    if one.job in places:
        return Assignment(one.job, devices=places[one.job])
    return None if one.placed else Assignment(one.job, type=one.type, gpus=one.gpus)


def _walked(ranking: Ranking, snapshot: Snapshot) -> list[_HostChoice]:
    """The jobs that have room in the order of a ranking; gangs that may not be stopped come first."""
    jobs, room, found = snapshot.jobs, snapshot.cluster.capacity.tolist(), list[_HostChoice]()
    first = (jobs.running & jobs.locked) * 2 + (jobs.running & (not ranking.preempt))
    for job in np.lexsort((np.arange(len(jobs)), ranking.key, -first)).tolist():
        if np.isposinf(ranking.key[job]) and not first[job]:
            continue
        variants = [(number, option.type, option.gpus) for number, option in enumerate(jobs.options(job))]
        if jobs.running[job]:
            variants = [(int(jobs.option[job]), int(jobs.type[job]), int(jobs.held[job]))]
        variant = next((each for each in variants if each[2] <= room[each[1]]), None)
        if variant is not None:
            room[variant[1]] -= variant[2]
            found.append(_chosen(snapshot, job, *variant))
        elif ranking.misfit == Misfit.STOP:
            break
    return found


def _chosen(snapshot: Snapshot, job: int, option: int, kind: int, gpus: int) -> _HostChoice:
    variants = snapshot.jobs.options(job)
    like = variants[option] if 0 <= option < len(variants) else variants[0]
    size = like.gpus if gpus < 0 else gpus
    placed = size > 0 and not any(amounts_beside(like)) and like.nodes == 0
    return _HostChoice(job, option, like.type if kind < 0 else kind, size, placed)


# CASSINI on top of a host policy: of several placements the one whose jobs fit best on links, and shifts for them to take turns there.

COUNTS = ("shifted", "kept", "cyclic", "uncommon", "realigned")


class _Judged(NamedTuple):
    """One placement, the groups of jobs on its links, and the mean score of these links."""

    candidate: CandidatePlan
    link_groups: list[tuple[list[int], tuple[tuple[Flow, ...], tuple[float, ...]], LinkGroup]]
    score: float
    cyclic: bool


@dataclass(frozen=True)
class Cassini(Policy):
    """Which jobs run, and with how many devices, is the host policy's; where they go and when they communicate is chosen for the links."""

    name = "cassini"
    names_devices = True
    paper = "Rajasekaran et al.: CASSINI: Network-Aware Job Scheduling in Machine Learning Clusters (NSDI 2024)"

    host: str = parameter("fifo", "the policy that says which jobs run: fifo, themis lease=600, ...")
    candidates: int = parameter(10, "placements that are compared", low=1, high=100)
    shifts: bool = parameter(True, "whether jobs that meet on links are shifted against each other")
    gain: float = parameter(0.02, "mean score that shifts must add", low=0.0, high=1.0)
    tolerance: float = parameter(0.05, "part of an iteration by which a job may be off before it is aligned anew", above=0.0)
    watch: float = parameter(60.0, "seconds between looks at how far shifted jobs are off", above=0.0, unit="seconds")

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
        return inner_policy(self.host, self.name, "host")

    def _judge(self, snapshot: Snapshot, candidate: CandidatePlan) -> _Judged:
        """The groups of jobs of one placement, and how well they fit."""
        cluster, jobs, devices = snapshot.cluster.description, snapshot.jobs, candidate.places
        traffic = Traffic.read(lambda name, rows: jobs.metric(name), jobs.rows)
        placed = sorted(devices, key=lambda job: int(jobs.rows[job]))
        crossed = [cluster.routes.crossed(devices[job]) if traffic.known[job] else () for job in placed]
        capacity, found = [link.bandwidth for link in cluster.links], []
        for link_group in link_groups(crossed):
            flows = []
            for at in link_group:
                sends = (float(traffic.iteration[placed[at]]), float(traffic.network[placed[at]]), float(traffic.bandwidth[placed[at]]))
                flows.append(flow_of(int(jobs.rows[placed[at]]), *sends, crossed[at]))
            asked = renumbered(flows, capacity)
            found.append(([placed[at] for at in link_group], asked, judge(*asked)))
        scores = [score for _, _, link_group in found for score in (link_group.scores if self.shifts else link_group.before)]
        return _Judged(candidate, found, float(np.mean(scores)) if scores else 1.0, any(link_group.cyclic for _, _, link_group in found))

    def _offsets(self, snapshot: Snapshot, best: _Judged, counts: dict[str, int]) -> dict[int, tuple[int, float]]:
        """Group and shift of every job that is shifted: where that is unique, adds enough to the score and lengthens no mean iteration."""
        found: dict[int, tuple[int, float]] = {}
        for members, asked, link_group in best.link_groups:
            counts["uncommon"] += link_group.uncommon
            if not link_group.scores or link_group.cyclic or np.mean(link_group.scores) - np.mean(link_group.before) < self.gain:
                continue
            if not pays(*asked, link_group.shifts):
                counts["kept"] += 1
                continue
            counts["shifted"] += 1
            name = min(int(snapshot.jobs.rows[job]) for job in members)
            found |= {job: (name, shift) for job, shift in zip(members, link_group.shifts)}
        return found

    def _notes(self, snapshot: Snapshot, counts: dict[str, int]) -> tuple[str, ...]:
        said = []
        if not snapshot.cluster.description.links:
            said.append("the cluster names no links: jobs run as the host policy says")
        if counts["uncommon"]:
            said.append("periods of jobs have no common multiple in the limit: their fit is that of the iterations that were looked at")
        return tuple(said)
