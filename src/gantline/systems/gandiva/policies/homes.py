"""Where jobs are at home: servers by affinity, and more jobs on a server than it has GPUs (Gandiva, OSDI 2018, section 4.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Seats = dict[int, int]
"""Server -> GPUs there."""


@dataclass(eq=False)
class Homes:
    """Servers with their GPUs, and the jobs that live on each; a server may host more than it can run at once."""

    gpus: list[int]
    may_use: Callable[[int], Sequence[int]]
    """Position of a job -> the servers that have its type of device."""
    of_job: dict[int, Seats] = field(default_factory=dict)
    """Position -> where it lives."""
    size: dict[int, int] = field(default_factory=dict)
    """Position -> GPUs that it asks for."""

    def __post_init__(self) -> None:
        self.demand = [0] * len(self.gpus)

    def move_in(self, job: int, size: int, seats: Seats) -> None:
        self.of_job[job], self.size[job] = seats, size
        for server, count in seats.items():
            self.demand[server] += count

    def move_out(self, job: int) -> Seats:
        seats = self.of_job.pop(job)
        for server, count in seats.items():
            self.demand[server] -= count
        return seats

    def room(self, server: int) -> int:
        """GPUs that no job which lives there asks for; negative: jobs take turns."""
        return self.gpus[server] - self.demand[server]

    def affinity(self, server: int) -> set[int]:
        """The sizes of the jobs that live there."""
        return {self.size[job] for job, seats in self.of_job.items() if server in seats}

    def choose(self, size: int, among: Sequence[int]) -> Seats | None:
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

    def _spread(self, size: int, among: Sequence[int]) -> Seats | None:
        """Free GPUs of several servers, those with most first."""
        seats: Seats = {}
        for server in sorted(among, key=lambda server: -self.room(server)):
            taken = min(max(self.room(server), 0), size)
            if taken:
                seats[server] = taken
                size -= taken
        return None if size else seats

    def _whole_servers(self, size: int, among: Sequence[int]) -> Seats | None:
        """Empty servers for a job that is wider than one; else the set in which jobs of its size take fewest turns."""
        seats: Seats = {}
        for server in (server for server in among if self.gpus[server] and not self.demand[server]):
            seats[server] = min(self.gpus[server], size - sum(seats.values()))
            if sum(seats.values()) == size:
                return seats
        alike = [where for job, where in self.of_job.items() if self.size[job] == size and set(where) <= set(among)]
        if not alike:
            return None
        least = min(alike, key=lambda where: max(self._load(server) for server in where))
        return least.copy()
