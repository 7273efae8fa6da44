"""Where jobs are at home, which of them move or share GPUs, and from homes to devices (Gandiva, OSDI 2018, sections 3 and 4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gantline.core.memory import Memory
from gantline.core.options import Option
from gantline.core.plan import Assignments, Mode
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import by_node

# Where jobs are at home: servers by affinity, and more jobs on a server than it has GPUs (Gandiva, OSDI 2018, section 4.1).


GpusByServer = dict[int, int]
"""Server -> GPUs there."""


@dataclass(eq=False)
class Homes:
    """Servers with their GPUs, and the jobs that live on each; a server may host more than it can run at once."""

    gpus: list[int]
    may_use: Callable[[int], Sequence[int]]
    """Position of a job -> the servers that have its type of device."""
    of_job: dict[int, GpusByServer] = field(default_factory=dict)
    """Position -> where it lives."""
    size: dict[int, int] = field(default_factory=dict)
    """Position -> GPUs that it asks for."""

    def __post_init__(self) -> None:
        self.demand = [0] * len(self.gpus)

    def move_in(self, job: int, size: int, gpus_by_server: GpusByServer) -> None:
        self.of_job[job], self.size[job] = gpus_by_server, size
        for server, count in gpus_by_server.items():
            self.demand[server] += count

    def move_out(self, job: int) -> GpusByServer:
        gpus_by_server = self.of_job.pop(job)
        for server, count in gpus_by_server.items():
            self.demand[server] -= count
        return gpus_by_server

    def room(self, server: int) -> int:
        """GPUs that no job which lives there asks for; negative: jobs take turns."""
        return self.gpus[server] - self.demand[server]

    def affinity(self, server: int) -> set[int]:
        """The sizes of the jobs that live there."""
        return {self.size[job] for job, gpus_by_server in self.of_job.items() if server in gpus_by_server}

    def choose(self, size: int, among: Sequence[int]) -> GpusByServer | None:
        """A home for a new job on these servers; None: it waits until one is there.

        Servers of its affinity with room, the least loaded first; then empty ones; then any with room; then rooms of several servers; then
        the least loaded server of its affinity, where it takes turns with the others.
        """
        fitting = [server for server in among if self.gpus[server] >= size]
        if not fitting:
            return self._whole_servers(size, among)
        alike = [server for server in fitting if size in self.affinity(server)]
        roomy = [server for server in fitting if self.room(server) >= size]
        for some in (
            [server for server in alike if server in roomy],
            [server for server in roomy if not self.demand[server]],
            roomy,
        ):
            if some:
                return {min(some, key=self._load): size}
        return self._spread(size, among) or ({min(alike, key=self._load): size} if alike else None)

    def _load(self, server: int) -> float:
        return self.demand[server] / self.gpus[server]

    def _spread(self, size: int, among: Sequence[int]) -> GpusByServer | None:
        """Free GPUs of several servers, those with most first."""
        gpus_by_server: GpusByServer = {}
        for server in sorted(among, key=lambda server: -self.room(server)):
            taken = min(max(self.room(server), 0), size)
            if taken:
                gpus_by_server[server] = taken
                size -= taken
        return None if size else gpus_by_server

    def _whole_servers(self, size: int, among: Sequence[int]) -> GpusByServer | None:
        """Empty servers for a job that is wider than one; else the set in which jobs of its size take fewest turns."""
        gpus_by_server: GpusByServer = {}
        for server in (server for server in among if self.gpus[server] and not self.demand[server]):
            gpus_by_server[server] = min(self.gpus[server], size - sum(gpus_by_server.values()))
            if sum(gpus_by_server.values()) == size:
                return gpus_by_server
        alike = [where for job, where in self.of_job.items() if self.size[job] == size and set(where) <= set(among)]
        if not alike:
            return None
        least = min(alike, key=lambda where: max(self._load(server) for server in where))
        return least.copy()


# Which job moves where: together where it is spread, and out of servers that are little used (Gandiva, OSDI 2018, section 3.2).


def for_locality(homes: Homes) -> bool:
    """Move jobs on several servers to one that, with what they leave there, has room; whether any moved."""
    moved = False
    for job, gpus_by_server in list(homes.of_job.items()):
        size = homes.size[job]
        if len(gpus_by_server) < 2 or size > max(homes.gpus):
            continue
        homes.move_out(job)
        fitting = [server for server in homes.may_use(job) if homes.room(server) >= size]
        goal = (
            {min(fitting, key=lambda server: (server not in gpus_by_server, homes.room(server), server)): size}
            if fitting
            else gpus_by_server
        )
        homes.move_in(job, size, goal)
        moved |= bool(fitting)
    return moved


def against_fragments(homes: Homes) -> None:
    """Move one job of one GPU from the server in use with most free GPUs to the fullest that still has one."""
    used = [server for server in range(len(homes.gpus)) if homes.demand[server] and homes.room(server) > 0]
    if len(used) < 2:
        return
    source = max(used, key=lambda server: (homes.room(server), -server))
    goal = min((server for server in used if server != source), key=lambda server: (homes.room(server), server))
    small = [job for job, gpus_by_server in homes.of_job.items() if gpus_by_server == {source: 1} and goal in homes.may_use(job)]
    if small and homes.room(goal) < homes.room(source):
        homes.move_out(small[0])
        homes.move_in(small[0], 1, {goal: 1})


# Two jobs on the same GPUs, tried and undone when turns would be better (Gandiva, OSDI 2018, section 3.3).

_TRIALS = 2
"""A job that so many trials were in vain for is left alone."""

Pair = tuple[int, int]
"""The rows of two jobs, ascending."""


@dataclass(eq=False)
class Packing:
    """The pairs in force since when, those that did not pay, and the speed of each job alone; jobs are named by their rows."""

    since: dict[Pair, float] = field(default_factory=dict)
    refused: set[Pair] = field(default_factory=set)
    alone: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def remembered(memory: Mapping[str, Memory], rows: set[int]) -> Packing:
        """What the last plan carried, of jobs that are still there."""
        since = {(a, b): at for a, b, at in memory.get("pairs", ()) if a in rows and b in rows}
        refused = {(a, b) for a, b in memory.get("refused", ()) if a in rows and b in rows}
        return Packing(since, refused, {int(row): speed for row, speed in memory.get("alone", {}).items() if int(row) in rows})

    def memory(self) -> dict[str, Memory]:
        return {
            "pairs": [[a, b, at] for (a, b), at in sorted(self.since.items())],
            "refused": [list(pair) for pair in sorted(self.refused)],
            "alone": {str(row): speed for row, speed in sorted(self.alone.items())},
        }

    def mates(self) -> dict[int, int]:
        return {row: mate for a, b in self.since for row, mate in ((a, b), (b, a))}

    def judge(self, rates: Mapping[int, float], now: float, trial: float) -> None:
        """Undo each pair that has been tried for long enough and does no more than its jobs would in turns."""
        for pair, since in list(self.since.items()):
            tried = now >= since + trial - 1e-9 and all(row in rates for row in pair)
            if tried and math.fsum(rates[row] / self.alone[row] for row in pair) <= 1.0 + 1e-9:
                del self.since[pair]
                self.refused.add(pair)

    def try_one(self, waiting: Sequence[int], hosts: Sequence[int], now: float) -> None:
        """Put the first of the waiting jobs beside the first host that it was not refused with; the least used of each come first."""
        in_vain = Counter(row for pair in self.refused for row in pair)
        closed = set(self.mates()) | {row for row, count in in_vain.items() if count >= _TRIALS}
        for guest in waiting:
            for host in hosts:
                pair = (min(guest, host), max(guest, host))
                if pair not in self.refused and not closed.intersection(pair) and all(row in self.alone for row in pair):
                    self.since[pair] = now
                    return


# From homes to devices: whose turn it is, which jobs grow into idle GPUs, and the assignments that say so.

Turns = dict[int, int]
"""Job whose turn it is -> the job that it shares its GPUs with; -1: none."""


@dataclass(eq=False)
class ServerRoom:
    """The servers that can be used, with their devices; jobs are named by their positions."""

    nodes: list[int]
    devices: list[list[int]]
    size: list[int]
    held: list[tuple[int, ...]]
    type: list[int]
    """Server -> its type of device."""
    options: Callable[[int], Sequence[Option]]
    """Job -> the ways in which it may run."""
    free: list[int] = field(default_factory=list)

    @staticmethod
    def of(snapshot: Snapshot) -> ServerRoom:
        cluster, jobs = snapshot.cluster, snapshot.jobs
        held = [jobs.devices(job) for job in range(len(jobs))]
        ours = np.zeros(len(cluster.device_holder), dtype=np.bool_)
        ours[[device for devices in held for device in devices]] = True  # those that two jobs share have no one holder
        found = by_node(snapshot, np.flatnonzero(cluster.device_open & (ours | (cluster.device_holder < 0))))
        types = cluster.node_type[list(found)].tolist()
        return ServerRoom(list(found), list(found.values()), jobs.gpus.tolist(), held, types, jobs.options)

    def may_use(self, job: int) -> list[int]:
        """The servers that have its type of device."""
        kinds = {variant.type for variant in self.options(job)}
        return [server for server, kind in enumerate(self.type) if kind in kinds]

    @property
    def gpus(self) -> list[int]:
        return [len(devices) for devices in self.devices]

    def turns(self, homes: Homes, order: Sequence[int], mates: Mapping[int, int]) -> tuple[Turns, list[int]]:
        """Whose turn it is, in order as far as GPUs go, and which wait at home; packed jobs have their turn together."""
        self.free = self.gpus
        running: Turns = {}
        for job in order:
            if job in running:
                continue
            gpus_by_server = homes.of_job[job]
            if all(self.free[server] >= count for server, count in gpus_by_server.items()):
                for server, count in gpus_by_server.items():
                    self.free[server] -= count
                running[job] = mates.get(job, -1)
                if job in mates:
                    running[mates[job]] = job
        return running, [job for job in order if job not in running]

    def idle_since(self, before: Mapping[str, float], now: float) -> dict[int, float]:
        """Server with free GPUs -> since when it has had some."""
        return {server: before.get(str(self.nodes[server]), now) for server, free in enumerate(self.free) if free}

    def grow(self, snapshot: Snapshot, homes: Homes, running: Turns, left: Sequence[int], idle: set[int]) -> dict[int, int]:
        """Job -> GPUs that it gets beyond what it asks for, all on its server; a newcomer takes them back at once.

        A job grows from what it has: one that waits would ask for more than its quota may allow, and never begin.
        """
        wanted = {server for job in left for server in homes.of_job[job]}
        grown: dict[int, int] = {}
        for job, mate in running.items():
            (server, *more) = homes.of_job[job]
            most = int(snapshot.jobs.max_gpus[job])
            if more or mate >= 0 or server not in idle or server in wanted or most <= self.size[job] or not self.held[job]:
                continue
            most = self.size[job] + self.free[server]
            sizes = [variant.gpus for variant in snapshot.jobs.sizes(job) if self.size[job] < variant.gpus <= most]
            if sizes:
                grown[job] = max(sizes) - self.size[job]
                self.free[server] -= grown[job]
        return grown

    def assignments(self, homes: Homes, running: Turns, grown: Mapping[int, int]) -> Assignments:
        """What each job gets whose turn it is. The jobs of a server take turns; a pair shares its devices."""
        pairs = [(job, mate) for job, mate in running.items() if mate < 0 or job < mate]
        chosen: dict[int, list[int]] = {}
        taken: set[int] = set()
        for stay in (True, False):  # first the devices that jobs go on with, then others for those that lack some
            for job, mate in pairs:
                before = chosen.setdefault(job, [])
                held = {*self.held[job], *(self.held[mate] if mate >= 0 else ())}
                for server, count in homes.of_job[job].items():
                    here = [device for device in self.devices[server] if device not in taken and (device in held or not stay)]
                    lacking = count + grown.get(job, 0) - sum(device in self.devices[server] for device in before)
                    before += here[:lacking]
                    taken.update(here[:lacking])
        given: list[tuple[int, tuple[int, ...], int, int]] = []
        for job, mate in pairs:
            same = set(chosen[job]) == set(self.held[job])
            devices, server = self.held[job] if same else tuple(chosen[job]), next(iter(homes.of_job[job]))
            mode = int(Mode.SPACE if mate >= 0 else Mode.EXCLUSIVE)
            given += [(one, devices, mode, server) for one in (job, mate) if one >= 0]
        jobs, devices_of, modes, servers = zip(*given) if given else ((), (), (), ())
        return Assignments(jobs, devices=devices_of, mode=modes, turns=servers)
