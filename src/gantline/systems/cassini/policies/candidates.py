"""Where the jobs that a host policy starts may go: several placements with the same jobs and the same numbers of devices.

The first is the plain one: the tightest node, else the tightest rack, else as few racks as may be. The others are as compact, and drawn
among those: a host policy would not offer placements that are worse by its own standard.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core import columns as c
from gantline.core.beside import amounts_beside
from gantline.core.plan import Misfit, Plan
from gantline.core.snapshot import Snapshot


class Chosen(NamedTuple):
    """A job that the host policy lets run: its position, option (below zero: the one in use), device type and number of devices."""

    job: int
    option: int
    type: int
    gpus: int
    placed: bool  # whether candidates place it; the engine does otherwise


def chosen_by(plan: Plan, snapshot: Snapshot) -> list[Chosen] | None:
    """The jobs that run by the host's plan, in its order; None: the plan says more than which jobs run with how many devices."""
    jobs, room = snapshot.jobs, snapshot.cluster.capacity.tolist()
    found: list[Chosen] = []
    if plan.assignments is not None:
        if not plan.assignments.plain_rows().all():
            return None
        for item in plan.assignments:
            ways = jobs.options(item.job)
            way = max(item.option, 0)
            found.append(_chosen(snapshot, item.job, way, item.type if item.type >= 0 else ways[way].type, max(item.gpus, -1)))
        return found
    if plan.ranking is None:
        return None
    key, ranking = plan.ranking.key, plan.ranking
    first = (jobs.running & jobs.locked) * 2 + (jobs.running & (not ranking.preempt))
    for job in np.lexsort((np.arange(len(jobs)), key, -first)).tolist():
        if np.isposinf(key[job]) and not first[job]:
            continue
        ways = [(jobs.option[job], jobs.type[job], jobs.held[job])] if jobs.running[job] else []
        ways = ways or [(k, option.type, option.gpus) for k, option in enumerate(jobs.options(job))]
        way = next(((int(k), int(kind), int(gpus)) for k, kind, gpus in ways if gpus <= room[kind]), None)
        if way is None:
            if ranking.misfit == Misfit.STOP:
                break
            continue
        room[way[1]] -= way[2]
        found.append(_chosen(snapshot, job, *way))
    return found


def _chosen(snapshot: Snapshot, job: int, option: int, kind: int, gpus: int) -> Chosen:
    jobs = snapshot.jobs
    ways = jobs.options(job)
    like = ways[option] if 0 <= option < len(ways) else ways[0]
    size = like.gpus if gpus < 0 else gpus
    return Chosen(job, option, kind, size, size > 0 and not any(amounts_beside(like)) and like.nodes == 0)


def placements(snapshot: Snapshot, chosen: list[Chosen], count: int) -> list[dict[int, tuple[int, ...]]]:
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
