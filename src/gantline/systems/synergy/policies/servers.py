"""Servers while one plan is made: which have how much left, and which job has what where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gantline.systems.synergy.policies.needs import Need, Vector

Seats = dict[int, int]
"""Server -> GPUs there."""


@dataclass(eq=False)
class Servers:
    """Servers that begin empty; what is taken stays taken, but for CPUs and memory of jobs that are shrunk."""

    gpus: list[int]
    cpus: list[float]
    memory: list[float]
    share: Vector
    """What belongs to one GPU."""
    consolidate: bool = False
    """Whether a job goes to the fullest server that holds it; else GPUs are taken in the order of their numbers."""
    home: Mapping[Need, Seats] = field(default_factory=dict)
    """Where jobs are already: they stay if there is room."""
    seats: dict[Need, Seats] = field(default_factory=dict)
    given: dict[Need, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = sum(self.gpus)

    def place(self, job: Need, each: Vector) -> bool:
        """Give the job its GPUs with so much each; whether there was room."""
        if job.gpus > self.free:
            return False
        seats = self._at_home(job, each)
        if seats is None:
            seats = self._consolidated(job.gpus, each) if self.consolidate else self._in_order(job.gpus, each)
        if seats is None:
            return False
        for server, gpus in seats.items():
            cpus, memory = self.cpus[server], self.memory[server]
            for _ in range(gpus):  # one by one, as they are counted: a product is rounded otherwise
                cpus, memory = cpus - each.cpus, memory - each.memory
            self.gpus[server], self.cpus[server], self.memory[server] = self.gpus[server] - gpus, cpus, memory
        self.free -= job.gpus
        self.seats[job], self.given[job] = seats, each
        return True

    def shrink_peers(self, job: Need, each: Vector) -> list[Need]:
        """Shrink jobs to their proportional share until a set of servers has room for this one; which were shrunk."""
        shrunk = []
        for server, gpus in self._targets(job.gpus).items():
            for peer in self._peers(server):
                if self.cpus[server] >= each.cpus * gpus and self.memory[server] >= each.memory * gpus:
                    break
                self._give_back(peer)
                shrunk.append(peer)
        return shrunk

    def _at_home(self, job: Need, each: Vector) -> Seats | None:
        seats = self.home.get(job)
        fits = seats and all(self.gpus[server] >= gpus == self._most(server, gpus, each) for server, gpus in seats.items())
        return seats if fits else None

    def _in_order(self, need: int, each: Vector) -> Seats | None:
        seats: Seats = {}
        for server, free in enumerate(self.gpus):
            if free and (taken := self._most(server, free if free < need else need, each)):
                seats[server] = taken
                need -= taken
                if not need:
                    return seats
        return None

    def _consolidated(self, need: int, each: Vector) -> Seats | None:
        fitting = [server for server, free in enumerate(self.gpus) if free >= need > 1 and self._most(server, need, each) == need]
        if fitting:
            return {min(fitting, key=self.gpus.__getitem__): need}
        seats: Seats = {}
        for server in self._fullest_first():  # the one that GPUs are taken from stays the one with fewest free
            if taken := self._most(server, min(self.gpus[server], need), each):
                seats[server] = taken
                need -= taken
            if not need:
                return seats
        return None

    def _fullest_first(self) -> list[int]:
        return sorted((server for server, free in enumerate(self.gpus) if free), key=self.gpus.__getitem__)

    def _most(self, server: int, gpus: int, each: Vector) -> int:
        """How many of these GPUs find their share, taken one by one."""
        cpus, memory = self.cpus[server], self.memory[server]
        each_cpus, each_memory = each
        for taken in range(gpus):
            if cpus < each_cpus or memory < each_memory:
                return taken
            cpus, memory = cpus - each_cpus, memory - each_memory
        return gpus

    def _targets(self, need: int) -> Seats:
        """Servers with enough free GPUs: the first that holds all of several, else those with fewest free ones."""
        whole = next((server for server, free in enumerate(self.gpus) if free >= need > 1), None)
        if whole is not None:
            return {whole: need}
        seats: Seats = {}
        for server in self._fullest_first():
            seats[server] = min(self.gpus[server], need)
            need -= seats[server]
            if not need:
                break
        return seats

    def _peers(self, server: int) -> list[Need]:
        """Jobs there with more than their share: those on fewest servers first, then those with most CPUs, then most memory."""
        peers = [job for job, seats in self.seats.items() if server in seats and self.given[job].exceeds(self.share)]
        return sorted(peers, key=lambda job: (len(self.seats[job]), -self.given[job].cpus, -self.given[job].memory))

    def _give_back(self, job: Need) -> None:
        """What the job has beyond its share, on all of its servers."""
        held = self.given[job]
        for server, gpus in self.seats[job].items():
            self.cpus[server] += (held.cpus - self.share.cpus) * gpus
            self.memory[server] += (held.memory - self.share.memory) * gpus
        self.given[job] = self.share
