"""Where the jobs that a host policy starts may go: several placements with the same jobs and the same numbers of devices.

The first is the plain one: the tightest node, else the tightest rack, else as few racks as may be. The others are as compact, and drawn
among those: a host policy would not offer placements that are worse by its own standard.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.beside import amounts_beside
from gantline.core.plan import Misfit, Plan, Ranking
from gantline.core.snapshot import Snapshot


class HostChoice(NamedTuple):
    """A job that the host policy lets run: its position, option (below zero: the one in use), device type and number of devices."""

    job: int
    option: int
    type: int
    gpus: int
    placed: bool  # whether candidates place it; the engine does otherwise


def chosen_by(plan: Plan, snapshot: Snapshot) -> list[HostChoice] | None:
    """The jobs that run by the host's plan, in its order; None: the plan says more than which jobs run with how many devices."""
    if plan.assignments is not None and plan.assignments.plain_rows().all():
        return [_chosen(snapshot, item.job, max(item.option, 0), item.type, item.gpus) for item in plan.assignments]
    return None if plan.ranking is None else _walked(plan.ranking, snapshot)


def _walked(ranking: Ranking, snapshot: Snapshot) -> list[HostChoice]:
    """The jobs that have room in the order of a ranking; gangs that may not be stopped come first."""
    jobs, room, found = snapshot.jobs, snapshot.cluster.capacity.tolist(), list[HostChoice]()
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


def _chosen(snapshot: Snapshot, job: int, option: int, kind: int, gpus: int) -> HostChoice:
    ways = snapshot.jobs.options(job)
    like = ways[option] if 0 <= option < len(ways) else ways[0]
    size = like.gpus if gpus < 0 else gpus
    placed = size > 0 and not any(amounts_beside(like)) and like.nodes == 0
    return HostChoice(job, option, like.type if kind < 0 else kind, size, placed)


def placements(snapshot: Snapshot, chosen: list[HostChoice], count: int) -> list[dict[int, tuple[int, ...]]]:
    """Up to so many placements, each the devices of every job that has some, by its position; jobs that run stay where they are."""
    cluster, jobs = snapshot.cluster, snapshot.jobs
    stay = {one.job: jobs.devices(one.job) for one in chosen if jobs.running[one.job] and len(jobs.devices(one.job)) == one.gpus}
    leaves = {d for job in np.flatnonzero(jobs.running).tolist() if job not in stay for d in jobs.devices(job)}
    free = [d for d in np.flatnonzero(cluster.device_open).tolist() if cluster.device_holder[d] == c.FREE or d in leaves]
    fresh = [one for one in chosen if one.job not in stay and one.placed]
    found: list[dict[int, tuple[int, ...]]] = []
    for number in range(max(count, 1) if fresh else 1):
        draw = snapshot.rng(f"candidate {number}") if number else None
        left, placed = _by_rack(snapshot, free), dict(stay)
        for one in fresh:
            devices = _take(left.get(one.type, {}), one.gpus, draw)
            if devices:
                placed[one.job] = devices
        if placed not in found:
            found.append(placed)
    return found


_TRIES = 8  # other sets of racks that are drawn
_Racks = dict[int, dict[int, list[int]]]  # rack -> node -> free devices


def _by_rack(snapshot: Snapshot, free: list[int]) -> dict[int, _Racks]:
    cluster, found = snapshot.cluster, dict[int, _Racks]()
    nodes, kinds, racks = cluster.device_node, cluster.node_type, cluster.node_rack
    for device in free:
        node = int(nodes[device])
        found.setdefault(int(kinds[node]), {}).setdefault(int(racks[node]), {}).setdefault(node, []).append(device)
    return found


def _take(racks: _Racks, need: int, draw: np.random.Generator | None) -> tuple[int, ...]:
    """Devices for one gang, taken off what is left; none: there are too few. However it is drawn, it spans as few racks as it can."""
    nodes = {node: devices for inside in racks.values() for node, devices in inside.items() if devices}
    if sum(map(len, nodes.values())) < need:
        return ()
    whole = [node for node, devices in nodes.items() if len(devices) >= need]
    if whole:
        tight = min(len(nodes[node]) for node in whole)
        order = _shuffled([node for node in whole if len(nodes[node]) == tight], draw)
    else:
        order = [node for rack in _few_racks(racks, need, draw) for node in _shuffled([n for n in racks[rack] if n in nodes], draw)]
    taken: list[int] = []
    for node in order:
        part = nodes[node][: need - len(taken)]
        del nodes[node][: len(part)]
        taken += part
        if len(taken) == need:
            break
    return tuple(taken)


def _few_racks(racks: _Racks, need: int, draw: np.random.Generator | None) -> list[int]:
    """The tightest rack that holds the gang, else as few as may be: those with most room, or as many others that hold it too."""
    room = {rack: sum(map(len, inside.values())) for rack, inside in racks.items()}
    fits = [rack for rack in racks if room[rack] >= need]
    if fits:
        tight = min(room[rack] for rack in fits)
        return _shuffled([rack for rack in fits if room[rack] == tight], draw)[:1]
    plain = sorted(_shuffled(list(racks), draw), key=lambda rack: -room[rack])
    few = next(k for k in range(1, len(plain) + 1) if sum(room[rack] for rack in plain[:k]) >= need)
    for _ in range(_TRIES if draw is not None else 0):
        other = _shuffled(plain, draw)[:few]
        if sum(room[rack] for rack in other) >= need:
            return other
    return plain[:few]


def _shuffled(places: list[int], draw: np.random.Generator | None) -> list[int]:
    return places if draw is None else [places[k] for k in draw.permutation(len(places))]
