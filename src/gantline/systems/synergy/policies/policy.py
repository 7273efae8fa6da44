"""`synergy`: an order of jobs, and CPUs and memory divided by what each gains from them (OSDI 2022, sections 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import RefusedError
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.sensitivity import Sensitivity, SensitivityProfile
from gantline.policies.elastic.pools import by_node, free_or_held_by
from gantline.systems.synergy.policies import mechanisms
from gantline.systems.synergy.policies.mechanisms import GpusByServer, Need, Servers, Vector, demand_of

# The nodes of one device type, and the jobs that ask for it: a snapshot as the mechanisms see it, and their answer as assignments.


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
        for job, gpus_by_server in self.servers.gpus_by_server.items():
            own = [device for device in self.held.get(job, ()) if device in server_of]
            there = {server: [device for device in own if server_of[device] == server] for server in gpus_by_server}
            chosen[job] = [device for server, gpus in gpus_by_server.items() for device in there[server][:gpus]]
            taken.update(chosen[job])
        for job, gpus_by_server in self.servers.gpus_by_server.items():
            for server, gpus in gpus_by_server.items():
                short = gpus - sum(server_of[device] == server for device in chosen[job])
                free = [device for device in self.devices[server] if device not in taken][:short]
                chosen[job] += free
                taken.update(free)
        return [self._assignment(job, tuple(chosen[job])) for job in self.servers.gpus_by_server]

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
    found = by_node(snapshot, np.flatnonzero(cluster.device_open & free_or_held_by(snapshot, positions)))
    devices = {server: found.get(node, []) for node, server in server_of.items()}
    gpus = [len(devices[server]) for server in range(len(nodes))]
    cpus, memory = ([float(getattr(described[node], name)) for node in nodes] for name in ("cpus", "memory"))
    share = Vector(*(_share(amounts, [described[node].gpus for node in nodes]) for amounts in (cpus, memory)))
    whole = max(((described[node].gpus, described[node].cpus, described[node].memory) for node in nodes), default=(1, 0.0, 0.0))
    needs = {position: _need(snapshot, kind, position, share, whole) for position in positions.tolist()}
    home = {needs[position]: _gpus_by_server(snapshot, held[position], server_of) for position in needs if held[position]}
    return Fleet(
        kind=kind,
        jobs=list(needs.values()),
        locked={needs[position] for position in needs if jobs.locked[position]},
        servers=Servers(
            gpus, cpus, memory, share, consolidate, home={job: gpus_by_server for job, gpus_by_server in home.items() if gpus_by_server}
        ),
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


def _gpus_by_server(snapshot: Snapshot, devices: tuple[int, ...], server_of: dict[int, int]) -> GpusByServer:
    """Where a job is; empty where one of its devices is on a node that cannot be used."""
    gpus_by_server: GpusByServer = {}
    for device in devices:
        server = server_of.get(int(snapshot.cluster.device_node[device]))
        if server is None:
            return {}
        gpus_by_server[server] = gpus_by_server.get(server, 0) + 1
    return gpus_by_server


def _need(snapshot: Snapshot, kind: int, position: int, share: Vector, server: tuple[int, float, float]) -> Need:
    """What a job can use: by its profile, by what it declares, else what it asks for or its share."""
    variant = snapshot.jobs.options(position)[0]
    profile = _profile(snapshot, kind, position, share)
    if profile is not None:
        demand, gain = demand_of(profile, variant.gpus, server)
        return Need(position, variant.gpus, demand, gain, profile)
    asked = Vector(variant.cpus / variant.gpus or share.cpus, variant.memory / variant.gpus or share.memory) if variant.gpus else share
    return Need(position, variant.gpus, asked, 1.0, None)


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


# The parameters of Synergy, by the names of its own policies, and what they mean.

ORDERS = ("fifo", "srtf", "las", "ftf", "drf", "tetris")
MECHANISMS = ("fair", "greedy", "tune", "opt")
PLACES = ("in-order", "consolidated")
MODES = ("replay", "static")


@dataclass(frozen=True)
class Synergy(Policy):
    """Jobs in an order; each gets GPUs, and CPUs and memory by what it gains from them.

    Jobs that run stay where they are while that gives them what the mechanism means them to have; CPUs and memory change in place.
    """

    name = "synergy"
    paper = "Mohan et al., Looking Beyond GPUs for DNN Scheduling on Multi-Tenant Clusters, OSDI 2022"
    names_devices = True
    needs = frozenset({"remaining"})
    usual_round = 300.0
    ties = "equal keys: the earlier arrival first, then the order of the trace"

    order: str = parameter("srtf", f"which jobs go first: {', '.join(ORDERS)}", one_of=ORDERS)
    mechanism: str = parameter(
        "tune", "CPUs and memory: fair (by GPUs), greedy (all or wait), tune (all or the share), opt (most speed)", one_of=MECHANISMS
    )
    place: str = parameter("in-order", "nodes: in-order, or consolidated (the fullest that holds the job)", one_of=PLACES)
    mode: str = parameter("replay", "regime synergy: static begins rounds at one second", one_of=MODES)

    def for_regime(self, regime: str) -> Policy:
        if regime != "synergy" and self.mode != "replay":
            raise RefusedError("'mode' is read in regime synergy only", where="policy 'synergy'", fix="leave it out")
        return self

    def order_moves(self) -> bool:
        return self.order in ("las", "ftf")

    def decide(self, snapshot: Snapshot) -> Plan:
        given: list[Assignment] = []
        for fleet in fleets_of(snapshot, consolidate=self.place == "consolidated"):
            order = [fleet.jobs[at] for at in np.argsort(self._key(snapshot, fleet), kind="stable").tolist()]
            self._divide([job for job in order if job in fleet.locked] + [job for job in order if job not in fleet.locked], fleet)
            given += fleet.assignments()
        return Plan.assign(given, valid_until=None if self.order_moves() else math.inf)

    def _key(self, snapshot: Snapshot, fleet: Fleet) -> Floats:
        """One number per job of the fleet, smaller first; jobs are in order of arrival."""
        jobs, at = snapshot.jobs, np.array([job.row for job in fleet.jobs], dtype=np.int64)
        if self.order == "fifo":
            return np.asarray(jobs.arrival[at])
        if self.order == "las":
            return np.asarray(jobs.attained_gpu[at])
        gain = np.array([1.0 if self.mechanism == "fair" else job.gain for job in fleet.jobs])
        left: Floats = jobs.remaining[at] / gain
        if self.order == "srtf":
            return left
        if self.order == "ftf":  # the job that its waiting has hurt most goes first
            return -(snapshot.now - jobs.arrival[at] + left) / np.maximum(jobs.estimate[at], 1e-9)
        shares = np.array([[job.gpus, job.demand.cpus * job.gpus, job.demand.memory * job.gpus] for job in fleet.jobs])
        shares = shares.reshape(-1, 3) / np.maximum(fleet.total, 1e-9)
        return np.asarray(shares.max(axis=1) if self.order == "drf" else shares.sum(axis=1) * left)

    def _divide(self, order: Sequence[Need], fleet: Fleet) -> None:
        servers = fleet.servers
        if self.mechanism == "fair":
            mechanisms.proportional(order, servers)
        elif self.mechanism == "greedy":
            mechanisms.greedy(order, servers)
        else:
            if self.mechanism == "opt":
                order = mechanisms.runnable(order, servers.free)
                cells = mechanisms.chosen_cells(order, sum(servers.cpus), sum(servers.memory)) or {}
                for job, cell in cells.items():
                    job.demand, job.gain = Vector(cell.cpus, cell.memory), cell.speed
            mechanisms.tune(order, servers)
