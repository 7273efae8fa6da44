"""Places for gangs on as few racks and nodes as may be, drawn among equally compact ones: where else a plan's gangs could be.

A policy that names devices offers such plans (`Policy.alternatives`); for hosts that name none CASSINI draws them itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gantline.core.columns import FREE
from gantline.core.plan import Assignments, Plan
from gantline.core.snapshot import Snapshot

Places = dict[int, tuple[int, ...]]
"""Job, by its position, to the devices it has."""
_Racks = dict[int, dict[int, list[int]]]  # rack -> node -> free devices
_TRIES = 8  # other sets of racks that are drawn


class GangNeed(NamedTuple):
    """A gang that needs a place."""

    job: int
    type: int
    gpus: int


def drawn_places(snapshot: Snapshot, free: Collection[int], wanted: Sequence[GangNeed], draw: np.random.Generator | None) -> Places:
    """Devices out of the free ones for each gang in turn; a gang for which too few are left has none. Without `draw` the plain places."""
    left, found = _by_rack(snapshot, free), Places()
    for one in wanted:
        devices = _take(left.get(one.type, {}), one.gpus, draw)
        if devices:
            found[one.job] = devices
    return found


def other_places(snapshot: Snapshot, plan: Plan, movable: Collection[int], count: int) -> Iterator[Places]:
    """Up to so many other places for the movable gangs of a plan that names devices; none spans more nodes or racks than in the plan.

    They are drawn from the devices that the plan gives these gangs and those that it leaves free.
    """
    grants = plan.assignments
    named = {} if grants is None else {int(job): tuple(held) for job, held in zip(grants.job, grants.entries("devices")) if held}
    gangs = [job for job in movable if job in named]
    cluster, jobs = snapshot.cluster, snapshot.jobs
    fixed = {device for job, held in named.items() if job not in gangs for device in held}
    leaves = {device for job in np.flatnonzero(jobs.running & ~jobs.locked).tolist() for device in jobs.devices(job)} - fixed
    free = [d for d in np.flatnonzero(cluster.device_open).tolist() if d in leaves or (cluster.device_holder[d] == FREE and d not in fixed)]
    kind = cluster.node_type[cluster.device_node]
    seen = [{job: tuple(sorted(named[job])) for job in gangs}]
    for number in range(1, count + 1):
        draw = snapshot.rng(f"other places {number}")
        order = [gangs[k] for k in draw.permutation(len(gangs))]
        wanted = [GangNeed(job, int(kind[named[job][0]]), len(named[job])) for job in order]
        places = {job: tuple(sorted(devices)) for job, devices in drawn_places(snapshot, free, wanted, draw).items()}
        if places not in seen and all(_no_wider(snapshot, places.get(job, ()), named[job]) for job in gangs):
            seen.append(places)
            yield places


def moved(plan: Plan, places: Places) -> Plan:
    """The plan with these gangs elsewhere."""
    grants = plan.assignments
    assert grants is not None
    devices = [places.get(job, held) for job, held in zip(grants.job.tolist(), grants.entries("devices"))]
    kept = {name: column for name, column in grants.filled_columns() if name not in ("job", "devices")}
    return replace(plan, assignments=Assignments(grants.job, devices=devices, **kept))


def _no_wider(snapshot: Snapshot, devices: tuple[int, ...], than: tuple[int, ...]) -> bool:
    """Whether these devices are as many, on no more nodes and racks."""
    cluster = snapshot.cluster

    def spans(held: tuple[int, ...]) -> tuple[int, int]:
        nodes = np.unique(cluster.device_node[list(held)])
        return len(nodes), len(np.unique(cluster.node_rack[nodes]))

    return len(devices) == len(than) and all(now <= before for now, before in zip(spans(devices), spans(than)))


def _by_rack(snapshot: Snapshot, free: Collection[int]) -> dict[int, _Racks]:
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
