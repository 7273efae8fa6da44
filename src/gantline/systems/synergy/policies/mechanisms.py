"""How CPUs and memory of servers are divided among jobs in their order (Synergy, OSDI 2022, section 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from scipy import sparse

from gantline.models.sensitivity import SensitivityProfile
from gantline.models.solvers.linear_programs import LinearProgram, solve

# What a job needs of servers: CPUs and memory per GPU, and how fast it is with them.


class Vector(NamedTuple):
    """CPUs and memory per GPU."""

    cpus: float
    memory: float

    def exceeds(self, share: Vector) -> bool:
        return self.cpus > share.cpus or self.memory > share.memory


@dataclass(eq=False)
class Need:
    """A job as the mechanisms see it."""

    row: int
    gpus: int
    demand: Vector
    """Per GPU: what saturates it, cut to one server."""
    gain: float
    """Its speed with that, relative to the proportional share."""
    profile: SensitivityProfile | None


def demand_of(profile: SensitivityProfile, gpus: int, server: tuple[int, float, float]) -> tuple[Vector, float]:
    """Per GPU what the profile of one GPU calls best, with the speed there; no more in all than a server of (GPUs, CPUs, GB) has."""
    gpus_by_server, most_cpus, most_memory = server
    cpus, memory, gain = profile.best_cpus * gpus, profile.best_memory * gpus, profile.best_speed
    fair_cpus, fair_memory = most_cpus / gpus_by_server * gpus, most_memory / gpus_by_server * gpus
    if gpus > gpus_by_server:  # on several servers it is cut to its share of them, and counts as no faster
        cut = (fair_cpus if cpus > most_cpus else cpus, fair_memory if memory > most_memory else memory)
        return Vector(cut[0] / gpus, cut[1] / gpus), 1.0
    if cpus > most_cpus:
        gain = 1.0 + (gain - 1.0) * (most_cpus - fair_cpus) / (cpus - fair_cpus)
    return Vector(min(cpus, most_cpus) / gpus, min(memory, most_memory) / gpus), gain


# Servers while one plan is made: which have how much left, and which job has what where.

GpusByServer = dict[int, int]
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
    home: Mapping[Need, GpusByServer] = field(default_factory=dict)
    """Where jobs are already: they stay if there is room."""
    gpus_by_server: dict[Need, GpusByServer] = field(default_factory=dict)
    given: dict[Need, Vector] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.free = sum(self.gpus)

    def place(self, job: Need, each: Vector) -> bool:
        """Give the job its GPUs with so much each; whether there was room."""
        if job.gpus > self.free:
            return False
        gpus_by_server = self._at_home(job, each)
        if gpus_by_server is None:
            gpus_by_server = self._consolidated(job.gpus, each) if self.consolidate else self._in_order(job.gpus, each)
        if gpus_by_server is None:
            return False
        for server, gpus in gpus_by_server.items():
            cpus, memory = self.cpus[server], self.memory[server]
            for _ in range(gpus):  # one by one, as they are counted: a product is rounded otherwise
                cpus, memory = cpus - each.cpus, memory - each.memory
            self.gpus[server], self.cpus[server], self.memory[server] = self.gpus[server] - gpus, cpus, memory
        self.free -= job.gpus
        self.gpus_by_server[job], self.given[job] = gpus_by_server, each
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

    def _at_home(self, job: Need, each: Vector) -> GpusByServer | None:
        gpus_by_server = self.home.get(job)
        fits = gpus_by_server and all(
            self.gpus[server] >= gpus == self._most(server, gpus, each) for server, gpus in gpus_by_server.items()
        )
        return gpus_by_server if fits else None

    def _in_order(self, need: int, each: Vector) -> GpusByServer | None:
        gpus_by_server: GpusByServer = {}
        for server, free in enumerate(self.gpus):
            if free and (taken := self._most(server, free if free < need else need, each)):
                gpus_by_server[server] = taken
                need -= taken
                if not need:
                    return gpus_by_server
        return None

    def _consolidated(self, need: int, each: Vector) -> GpusByServer | None:
        fitting = [server for server, free in enumerate(self.gpus) if free >= need > 1 and self._most(server, need, each) == need]
        if fitting:
            return {min(fitting, key=self.gpus.__getitem__): need}
        gpus_by_server: GpusByServer = {}
        for server in self._fullest_first():  # the one that GPUs are taken from stays the one with fewest free
            if taken := self._most(server, min(self.gpus[server], need), each):
                gpus_by_server[server] = taken
                need -= taken
            if not need:
                return gpus_by_server
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

    def _targets(self, need: int) -> GpusByServer:
        """Servers with enough free GPUs: the first that holds all of several, else those with fewest free ones."""
        whole = next((server for server, free in enumerate(self.gpus) if free >= need > 1), None)
        if whole is not None:
            return {whole: need}
        gpus_by_server: GpusByServer = {}
        for server in self._fullest_first():
            gpus_by_server[server] = min(self.gpus[server], need)
            need -= gpus_by_server[server]
            if not need:
                break
        return gpus_by_server

    def _peers(self, server: int) -> list[Need]:
        """Jobs there with more than their share: those on fewest servers first, then those with most CPUs, then most memory."""
        peers = [
            job for job, gpus_by_server in self.gpus_by_server.items() if server in gpus_by_server and self.given[job].exceeds(self.share)
        ]
        return sorted(peers, key=lambda job: (len(self.gpus_by_server[job]), -self.given[job].cpus, -self.given[job].memory))

    def _give_back(self, job: Need) -> None:
        """What the job has beyond its share, on all of its servers."""
        held = self.given[job]
        for server, gpus in self.gpus_by_server[job].items():
            self.cpus[server] += (held.cpus - self.share.cpus) * gpus
            self.memory[server] += (held.memory - self.share.memory) * gpus
        self.given[job] = self.share


# Synergy's optimum: each job one cell of its profile, so that their relative speeds add up to most (OSDI 2022, section 4.1).
#
# The servers count as one. Jobs of one kind (network and number of GPUs) are interchangeable, so the program asks how
# many jobs of a kind get a cell: a few dozen whole numbers instead of one per job and cell. Cells that another beats
# with no more of anything are left out.


class Cell(NamedTuple):
    """CPUs and memory per GPU, and the speed with them."""

    speed: float
    cpus: float
    memory: float


class JobKind(NamedTuple):
    """So many jobs of so many GPUs each that train one network."""

    cells: tuple[Cell, ...]
    gpus: int
    jobs: int


def useful_cells(profile: SensitivityProfile, least: float) -> tuple[Cell, ...]:
    """The cells at least this fast which no other beats with no more CPUs and memory, fastest first."""
    cells = [
        Cell(float(profile.speed[row, column]), float(cpus), float(memory))
        for row, cpus in enumerate(profile.cpus)
        for column, memory in enumerate(profile.memory)
        if profile.speed[row, column] >= least
    ]
    kept: list[Cell] = []
    for cell in sorted(cells, key=lambda cell: (-cell.speed, cell.cpus, cell.memory)):
        if not any(other.cpus <= cell.cpus and other.memory <= cell.memory for other in kept):
            kept.append(cell)
    return tuple(kept)


def best_cells(kinds: Sequence[JobKind], cpus: float, memory: float) -> list[list[Cell]] | None:
    """For each kind the cells of its jobs, fastest first; None: they cannot all have one."""
    if not kinds:  # no job has a profile, and a solver wants at least one column
        return []
    cells = [(at, cell) for at, kind in enumerate(kinds) for cell in kind.cells]
    gpus = np.array([kinds[at].gpus for at, _ in cells], dtype=np.float64)
    column = np.arange(len(cells))
    amounts = np.array([[cell.cpus, cell.memory] for _, cell in cells]) * gpus[:, None]
    rows = np.concatenate([[at for at, _ in cells], np.repeat([len(kinds), len(kinds) + 1], len(cells))])
    values = np.concatenate([np.ones(len(cells)), amounts[:, 0], amounts[:, 1]])
    matrix = sparse.csc_array((values, (rows, np.tile(column, 3))), shape=(len(kinds) + 2, len(cells)))
    count = np.array([kind.jobs for kind in kinds], dtype=np.float64)
    program = LinearProgram(
        gain=np.array([cell.speed for _, cell in cells]),
        matrix=matrix,
        lower=np.concatenate([count, [0.0, 0.0]]),
        upper=np.concatenate([count, [cpus, memory]]),
        low=np.zeros(len(cells)),
        high=count[[at for at, _ in cells]],
        whole=np.ones(len(cells)),
    )
    found = solve(program, "mip", gap=0.0, jump=False)
    if found.status != "optimal":
        return None
    chosen: list[list[Cell]] = [[] for _ in kinds]
    for (at, cell), jobs in zip(cells, np.rint(found.x).astype(int).tolist()):
        chosen[at] += [cell] * jobs
    return chosen


# How CPUs and memory are divided among jobs in their order: in proportion, greedily, tuned, or by an integer program.
#
# Mohan et al., OSDI 2022, section 4. Each function gives the jobs that it placed, with their speeds relative to the proportional share.

Speeds = dict[Need, float]
Job = TypeVar("Job", bound=Need)


def runnable(order: Iterable[Job], gpus: int) -> list[Job]:
    """The jobs that GPUs remain for, in order; those that do not fit are passed over."""
    chosen = []
    for job in order:
        if job.gpus <= gpus:
            chosen.append(job)
            gpus -= job.gpus
            if not gpus:
                break
    return chosen


def proportional(order: Iterable[Need], servers: Servers) -> Speeds:
    """Every GPU brings its share of CPUs and memory."""
    return {job: 1.0 for job in _while_free(order, servers) if servers.place(job, servers.share)}


def greedy(order: Iterable[Need], servers: Servers) -> Speeds:
    """A job gets all that it can use, or waits."""
    return {job: job.gain for job in _while_free(order, servers) if servers.place(job, job.demand)}


def tune(order: Iterable[Need], servers: Servers) -> Speeds:
    """A job gets all that it can use, else its share, for which others are shrunk to theirs."""
    speeds: Speeds = {}
    for job in _while_free(order, servers):
        if servers.place(job, job.demand):
            speeds[job] = job.gain
            continue
        beyond = job.demand.exceeds(servers.share)
        each, speed = (servers.share, 1.0) if beyond else (job.demand, job.gain)
        if not (beyond and servers.place(job, each)):
            speeds |= dict.fromkeys(servers.shrink_peers(job, each), 1.0)
            if not servers.place(job, each):
                continue
        speeds[job] = speed
    return speeds


def chosen_cells(jobs: Sequence[Need], cpus: float, memory: float) -> dict[Need, Cell] | None:
    """For each job the cell that makes all of them fastest in sum, none slower than by its share; None: there is no such choice.

    Jobs without a profile are left out. Of equal jobs, the first in the order gets the fastest cell.
    """
    kinds: dict[tuple[str, int], list[Need]] = {}
    profiles: dict[str, SensitivityProfile] = {}
    for job in jobs:
        if job.profile is not None:
            kinds.setdefault((job.profile.network, job.gpus), []).append(job)
            profiles[job.profile.network] = job.profile
    asked = tuple((profiles[name], gpus, len(kinds[name, gpus])) for name, gpus in sorted(kinds))
    found = _solved(asked, cpus, memory)
    if found is None:
        return None
    return {job: cell for kind, cells in zip(sorted(kinds), found) for job, cell in zip(kinds[kind], cells)}


@lru_cache(maxsize=4096)
def _solved(asked: tuple[tuple[SensitivityProfile, int, int], ...], cpus: float, memory: float) -> list[list[Cell]] | None:
    """Rounds with the same jobs have the same answer."""
    return best_cells([JobKind(useful_cells(profile, 1.0), gpus, jobs) for profile, gpus, jobs in asked], cpus, memory)


def _while_free(order: Iterable[Need], servers: Servers) -> Iterator[Need]:
    """The jobs of the order for which enough GPUs are free when their turn comes."""
    for job in order:
        if not servers.free:
            return
        if job.gpus <= servers.free:
            yield job
