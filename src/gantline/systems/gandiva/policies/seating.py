"""From homes to devices: whose turn it is, which jobs grow into idle GPUs, and the assignments that say so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gantline.core.options import Option
from gantline.core.plan import Assignments, Mode
from gantline.core.snapshot import Snapshot
from gantline.systems.gandiva.policies.homes import Homes

Turns = dict[int, int]
"""Job whose turn it is -> the job that it shares its GPUs with; -1: none."""


@dataclass(eq=False)
class ServerSeating:
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
    def of(snapshot: Snapshot) -> ServerSeating:
        cluster, jobs = snapshot.cluster, snapshot.jobs
        held = [jobs.devices(job) for job in range(len(jobs))]
        ours = {device for devices in held for device in devices}
        by_node: dict[int, list[int]] = {}
        holder, is_open = cluster.device_holder.tolist(), cluster.device_open.tolist()
        for device, node in enumerate(cluster.device_node.tolist()):
            if is_open[device] and (device in ours or holder[device] < 0):
                by_node.setdefault(node, []).append(device)
        nodes, types = list(by_node), cluster.node_type.tolist()
        return ServerSeating(nodes, list(by_node.values()), jobs.gpus.tolist(), held, [types[node] for node in nodes], jobs.options)

    def may_use(self, job: int) -> list[int]:
        """The servers that have its type of device."""
        kinds = {way.type for way in self.options(job)}
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
            seats = homes.of_job[job]
            if all(self.free[server] >= count for server, count in seats.items()):
                for server, count in seats.items():
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
            sizes = [way.gpus for way in snapshot.jobs.sizes(job) if self.size[job] < way.gpus <= most]
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
