"""Where the jobs that a host policy starts may go: several placements with the same jobs and the same numbers of devices.

A host that names devices offers its own (`Policy.alternatives`). For others they are drawn: the first is the plain one (the tightest node,
else the tightest rack, else as few racks as may be), and the rest are as compact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.beside import amounts_beside
from gantline.core.columns import FREE
from gantline.core.errors import UsageError
from gantline.core.plan import Assignment, Misfit, Plan, Ranking
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.drawn_places import GangNeed, Places, drawn_places


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
        ways = [(number, option.type, option.gpus) for number, option in enumerate(jobs.options(job))]
        if jobs.running[job]:
            ways = [(int(jobs.option[job]), int(jobs.type[job]), int(jobs.held[job]))]
        way = next((each for each in ways if each[2] <= room[each[1]]), None)
        if way is not None:
            room[way[1]] -= way[2]
            found.append(_chosen(snapshot, job, *way))
        elif ranking.misfit == Misfit.STOP:
            break
    return found


def _chosen(snapshot: Snapshot, job: int, option: int, kind: int, gpus: int) -> _HostChoice:
    ways = snapshot.jobs.options(job)
    like = ways[option] if 0 <= option < len(ways) else ways[0]
    size = like.gpus if gpus < 0 else gpus
    placed = size > 0 and not any(amounts_beside(like)) and like.nodes == 0
    return _HostChoice(job, option, like.type if kind < 0 else kind, size, placed)
