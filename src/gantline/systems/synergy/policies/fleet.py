"""The nodes of one device type, and the jobs that ask for it: a snapshot as the mechanisms see it, and their answer as assignments."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.plan import Assignment
from gantline.core.snapshot import Snapshot
from gantline.models.sensitivity import Sensitivity, SensitivityProfile
from gantline.systems.synergy.policies.needs import Need, Vector, demand_of
from gantline.systems.synergy.policies.servers import Seats, Servers


@dataclass(eq=False)
class Fleet:
    """Jobs in order of arrival; `Need.row` is their position in the snapshot."""

    kind: int
    jobs: list[Need]
    locked: set[Need]
    servers: Servers
    nodes: list[int]
    held: dict[Need, tuple[int, ...]]
    devices: dict[int, list[int]]
    """Server -> its devices that may be used."""
    total: Floats
    counts_cpus: bool
    counts_memory: bool

    def assignments(self) -> list[Assignment]:
        """What each placed job gets; a job that stays on a server keeps its devices there."""
        server_of = {device: server for server, devices in self.devices.items() for device in devices}
        chosen: dict[Need, list[int]] = {}
        taken: set[int] = set()
        for job, seats in self.servers.seats.items():
            own = [device for device in self.held.get(job, ()) if device in server_of]
            there = {server: [device for device in own if server_of[device] == server] for server in seats}
            chosen[job] = [device for server, gpus in seats.items() for device in there[server][:gpus]]
            taken.update(chosen[job])
        for job, seats in self.servers.seats.items():
            for server, gpus in seats.items():
                short = gpus - sum(server_of[device] == server for device in chosen[job])
                free = [device for device in self.devices[server] if device not in taken][:short]
                chosen[job] += free
                taken.update(free)
        return [self._assignment(job, tuple(chosen[job])) for job in self.servers.seats]

    def _assignment(self, job: Need, devices: tuple[int, ...]) -> Assignment:
        each = self.servers.given[job]
        return Assignment(
            job.row,
            type=self.kind,
            gpus=job.gpus,
            devices=devices,
            cpus=each.cpus * job.gpus if self.counts_cpus else math.nan,
            memory=each.memory * job.gpus if self.counts_memory else math.nan,
        )


def fleets_of(snapshot: Snapshot, *, consolidate: bool) -> Iterator[Fleet]:
    """One per device type that a job asks for; a job asks for the type of its first option."""
    jobs, options = snapshot.jobs, snapshot.options
    if not len(jobs):
        return
    kinds = np.array([options[int(first)].type for first in jobs.option_first.tolist()])
    for kind in np.unique(kinds).tolist():
        yield _fleet(snapshot, int(kind), np.flatnonzero(kinds == kind), consolidate)


def _fleet(snapshot: Snapshot, kind: int, positions: Ints, consolidate: bool) -> Fleet:
    cluster, jobs = snapshot.cluster, snapshot.jobs
    described = cluster.description.nodes
    nodes = np.flatnonzero((cluster.node_type == kind) & cluster.node_up).tolist()
    server_of = {node: server for server, node in enumerate(nodes)}
    held = {position: jobs.devices(position) for position in positions.tolist()}
    ours = {device for devices in held.values() for device in devices}
    devices: dict[int, list[int]] = {server: [] for server in range(len(nodes))}
    holder, is_open = cluster.device_holder.tolist(), cluster.device_open.tolist()
    for device, node in enumerate(cluster.device_node.tolist()):
        if node in server_of and is_open[device] and (device in ours or holder[device] < 0):
            devices[server_of[node]].append(device)
    gpus = [len(devices[server]) for server in range(len(nodes))]
    cpus, memory = ([float(getattr(described[node], name)) for node in nodes] for name in ("cpus", "memory"))
    share = Vector(*(_share(amounts, [described[node].gpus for node in nodes]) for amounts in (cpus, memory)))
    whole = max(((described[node].gpus, described[node].cpus, described[node].memory) for node in nodes), default=(1, 0.0, 0.0))
    needs = {position: _need(snapshot, kind, position, share, whole) for position in positions.tolist()}
    home = {needs[position]: _seats(snapshot, held[position], server_of) for position in needs if held[position]}
    return Fleet(
        kind=kind,
        jobs=list(needs.values()),
        locked={needs[position] for position in needs if jobs.locked[position]},
        servers=Servers(gpus, cpus, memory, share, consolidate, home={job: seats for job, seats in home.items() if seats}),
        nodes=nodes,
        held={needs[position]: each for position, each in held.items()},
        devices=devices,
        total=np.array([sum(gpus), sum(cpus), sum(memory)], dtype=np.float64),
        counts_cpus=any(cpus),
        counts_memory=any(memory),
    )


def _share(amounts: list[float], gpus: list[int]) -> float:
    """What every GPU can have on its own node."""
    return min((amount / count for amount, count in zip(amounts, gpus) if count), default=0.0)


def _seats(snapshot: Snapshot, devices: tuple[int, ...], server_of: dict[int, int]) -> Seats:
    """Where a job is; empty where one of its devices is on a node that cannot be used."""
    seats: Seats = {}
    for device in devices:
        server = server_of.get(int(snapshot.cluster.device_node[device]))
        if server is None:
            return {}
        seats[server] = seats.get(server, 0) + 1
    return seats


def _need(snapshot: Snapshot, kind: int, position: int, share: Vector, server: tuple[int, float, float]) -> Need:
    """What a job can use: by its profile, by what it declares, else what it asks for or its share."""
    way = snapshot.jobs.options(position)[0]
    profile = _profile(snapshot, kind, position, share)
    if profile is not None:
        demand, gain = demand_of(profile, way.gpus, server)
        return Need(position, way.gpus, demand, gain, profile)
    asked = Vector(way.cpus / way.gpus or share.cpus, way.memory / way.gpus or share.memory) if way.gpus else share
    return Need(position, way.gpus, asked, 1.0, None)


def _profile(snapshot: Snapshot, kind: int, position: int, share: Vector) -> SensitivityProfile | None:
    """From the run's model, else from the job's own numbers per GPU: `best_cpus`, `best_memory` and the speed with them, `best_speed`."""
    jobs, model = snapshot.jobs, snapshot.performance
    if isinstance(model, Sensitivity):
        code = int(jobs.model[position])
        return model.profile(snapshot.models[code], kind) if code >= 0 else None
    cpus, memory, speed = (float(jobs.metric(name)[position]) for name in ("best_cpus", "best_memory", "best_speed"))
    if math.isnan(speed) or (math.isnan(cpus) and math.isnan(memory)):
        return None
    cpus, memory = share.cpus if math.isnan(cpus) else cpus, share.memory if math.isnan(memory) else memory
    cells = np.array([[1.0, 1.0], [1.0, speed]])
    axes = (np.array(sorted((share.cpus, cpus))), np.array(sorted((share.memory, memory))))
    return SensitivityProfile(f"job {position}", *axes, cells, cpus, memory, speed, 1.0)
