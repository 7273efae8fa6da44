"""How CPUs and memory are divided among jobs in their order: in proportion, greedily, tuned, or by an integer program.

Mohan et al., OSDI 2022, section 4. Each function gives the jobs that it placed, with their speeds relative to the proportional share.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeVar

from gantline.models.sensitivity import SensitivityProfile
from gantline.systems.synergy.policies.best_cells import Cell, JobKind, best_cells, useful_cells
from gantline.systems.synergy.policies.needs import Need
from gantline.systems.synergy.policies.servers import Servers

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
