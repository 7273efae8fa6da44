"""The loop of `--regime synergy`: Synergy's orders and mechanisms as its simulator runs them, job by job."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

import numpy as np

from gantline.core.errors import RefusedError, UsageError, near
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceCalendar, HeldInterval, write_intervals, write_jobs
from gantline.models.sensitivity import Networks, PerGpu, SensitivityProfile
from gantline.systems.synergy.policies import mechanisms
from gantline.systems.synergy.policies.mechanisms import GpusByServer, Need, Servers, Speeds, Vector, chosen_cells, demand_of
from gantline.systems.synergy.policies.policy import Synergy
from gantline.systems.synergy.traces import SynergyProfiles
from gantline.traces.trace import Trace

# Synergy's jobs in its simulator: what the trace says of them, what has become of them, and in which order they go.


_PATIENCE = 3_600_000.0
"""A job that has not run for a thousand hours goes before all others."""


class Sku(NamedTuple):
    """A server. Storage is left out: jobs need what is theirs by their GPUs, so that it never binds."""

    gpus: int
    cpus: float
    memory: float


@dataclass(eq=False)
class SynergyJob(Need):
    """A job of the trace, and what has become of it."""

    profile: SensitivityProfile
    _: KW_ONLY
    arrival: float
    steps: float
    done: float = 0.0
    attained: float = 0.0
    speed: float = 1.0
    """Of its last round; `gain` where it did not run. The orders read it before it is set anew."""
    last_ran: float = 0.0
    pace: float = 0.0
    """The speed at which it last ran; 0: it has not."""
    changes: int = 0
    """Of its pace."""

    @property
    def length(self) -> float:
        """Seconds at the proportional share."""
        return self.steps * self.profile.step_time

    @property
    def remaining(self) -> float:
        return (self.steps - self.done) * self.profile.step_time


def by_order(jobs: Sequence[SynergyJob], order: str, now: float, *, proportional: bool, cluster: Sequence[float]) -> list[SynergyJob]:
    """The jobs by an order of the original, ties by arrival; those that have waited too long go first."""

    def left(job: SynergyJob) -> float:
        return job.remaining if proportional else job.remaining / job.speed

    def demand(job: SynergyJob) -> tuple[float, float, float]:
        gpus = job.gpus
        return gpus / cluster[0], job.demand.cpus * gpus / cluster[1], job.demand.memory * gpus / cluster[2]

    keys: dict[str, Callable[[SynergyJob], float]] = {
        "fifo": lambda job: job.arrival,
        "srtf": left,
        "las": lambda job: job.attained,
        "ftf": lambda job: (now - job.arrival + left(job)) / job.length,
        "drf": lambda job: max(demand(job)),
        "tetris": lambda job: sum(demand(job)) * left(job),
    }
    key = keys[order]
    return sorted(jobs, key=lambda job: (now - job.last_ran < _PATIENCE, key(job), job.arrival))


# The round of `+opt`: the best cell for each job on all servers taken as one.
#
# The original then spreads the cells over servers by a linear program without a goal, and lets jobs be on several
# servers by fractions. Such an assignment always exists, and speeds do not depend on it; here GPUs are taken in the
# order of their numbers.


def opt(order: Sequence[Need], servers: Servers) -> Speeds:
    """The cells that together are fastest, each at least as fast as the proportional share."""
    chosen = chosen_cells(order, sum(servers.cpus), sum(servers.memory))
    if chosen is None:
        raise RefusedError("the jobs of a round cannot all be as fast as their share makes them", where="--set mechanism=opt")
    for job in order:
        servers.place(job, Vector(0.0, 0.0))
    return {job: chosen[job].speed for job in order}


# Synergy's clock: rounds in which everything is given out afresh, and at whose end a finish is seen.


class Mechanism(NamedTuple):
    """How CPUs and memory are divided, and what the orders make of it."""

    divide: Callable[[Sequence[SynergyJob], Servers], mechanisms.Speeds]
    proportional: bool = False
    """Orders count with the speed at the proportional share."""
    tunes: bool = False
    """Orders count with the speed of the last round, where a job was tuned down."""
    limited: bool = False
    """The order is cut to the jobs that GPUs remain for before anything is placed."""


MECHANISMS = {
    "fair": Mechanism(mechanisms.proportional, proportional=True),
    "greedy": Mechanism(mechanisms.greedy),
    "tune": Mechanism(mechanisms.tune, tunes=True),
    "opt": Mechanism(opt, limited=True),
}


@dataclass
class SynergyRounds:
    """The run. It stops at the first round in which no job is there, as the original does, even if others come later."""

    jobs: Sequence[SynergyJob]
    length: float
    order: str
    mechanism: Mechanism
    sku: Sku
    servers: int
    consolidate: bool = False
    static: bool = False
    """Rounds begin at one second."""
    on_round: Callable[[float, int, int], None] | None = None
    ends: dict[int, float] = field(default_factory=dict)
    spells: list[tuple[float, SynergyJob, GpusByServer]] = field(default_factory=list)
    """(begin of the round, job, where)."""
    count: int = 0

    def run(self) -> float:
        """Run; the time at which it stopped."""
        queue = sorted(self.jobs, key=lambda job: job.arrival)
        first = 1.0 if self.static else 0.0
        now = first + max(0.0, math.ceil((queue[0].arrival - first) / self.length)) * self.length if queue else 0.0
        active: list[SynergyJob] = []
        arrived = 0
        while True:
            while arrived < len(queue) and queue[arrived].arrival <= now:
                active.append(queue[arrived])
                arrived += 1
            if not active:
                return now
            if self.on_round is not None:
                self.on_round(now, arrived, len(active))
            active = self._round(active, now)
            self.count += 1
            now += self.length

    def _round(self, active: list[SynergyJob], now: float) -> list[SynergyJob]:
        mechanism, servers = self.mechanism, self._empty_servers()
        cluster = [amount * self.servers for amount in self.sku]
        order = by_order(active, self.order, now, proportional=mechanism.proportional, cluster=cluster)
        for job in active:
            job.speed = job.gain
        if mechanism.limited or self.order == "las":
            order = mechanisms.runnable(order, servers.free)
            if mechanism.tunes:
                order.sort(key=lambda job: -job.gpus)
        speeds = mechanism.divide(order, servers)
        if mechanism.tunes:
            self._check(order, speeds, servers)
        ended = set()
        for need, speed in speeds.items():
            job = self.jobs[need.row]
            if mechanism.tunes:
                job.speed = speed
            job.changes += job.pace not in (0.0, speed)
            job.pace = speed
            job.done += math.floor(self.length / (job.profile.step_time / speed))
            job.attained += self.length * job.gpus
            job.last_ran = now
            self.spells.append((now, job, servers.gpus_by_server[job]))
            if job.done >= job.steps:
                self.ends[job.row] = now + self.length
                ended.add(job)
        return [job for job in active if job not in ended]

    def _empty_servers(self) -> Servers:
        sku, count = self.sku, self.servers
        share = Vector(sku.cpus / sku.gpus, sku.memory / sku.gpus)
        return Servers([sku.gpus] * count, [sku.cpus] * count, [sku.memory] * count, share, self.consolidate)

    def _check(self, order: Sequence[SynergyJob], speeds: mechanisms.Speeds, servers: Servers) -> None:
        """The original gives up where a job finds no room for its share."""
        for job in order:
            if job not in speeds and job.gpus <= servers.free:
                what = f"the job of row {job.row} finds no room for its share, where Synergy's simulator gives up"
                raise RefusedError(what, where="--regime synergy", fix="use another mechanism or cluster")


# Rounds of a job on the same servers, joined to one spell with devices of its own.


def joined(
    rounds: Sequence[tuple[float, SynergyJob, GpusByServer]], length: float, sku: Sku, servers: int
) -> list[tuple[int, float, float, list[int]]]:
    """Row, begin, end and devices, in the order in which they begin. The original counts GPUs by server;
    here each spell keeps the devices it began with.
    """
    last: dict[int, int] = {}
    found: list[tuple[int, float, float, GpusByServer]] = []
    for begin, job, gpus_by_server in rounds:
        at = last.get(job.row)
        if at is not None and found[at][2] == begin and found[at][3] == gpus_by_server:
            found[at] = (job.row, found[at][1], begin + length, gpus_by_server)
        else:
            last[job.row] = len(found)
            found.append((job.row, begin, begin + length, gpus_by_server))
    free = DeviceCalendar(sku.gpus * servers)
    return [
        (
            row,
            begin,
            end,
            [one for server, gpus in gpus_by_server.items() for one in free.take(gpus, begin, end, server * sku.gpus, sku.gpus)],
        )
        for row, begin, end, gpus_by_server in found
    ]


# The loop of `--regime synergy`: Synergy's orders and mechanisms as its simulator runs them, job by job.

_WHERE = "--regime synergy"
_CPUS, _MEMORY, _STORAGE = 24.0, 500.0, 500.0
"""What a server has where the cluster says nothing of CPUs, GB of memory and MB/s of storage."""


def drive(simulation: Simulation, trace: Trace) -> dict[str, float]:
    """Run the trace until a round finds no job."""
    policy, state = simulation.engine.policy, simulation.state
    assert isinstance(policy, Synergy)  # the scope has no other
    if policy.order == "las" and policy.mechanism == "opt":
        what = "Synergy's simulator fails with this order and mechanism: it takes a server to have as many CPUs and GB as GPUs"
        raise RefusedError(what, where="--set order=las mechanism=opt", fix="use another mechanism, or --regime default")
    if not isinstance(simulation.profiles, SynergyProfiles):
        raise UsageError("no profiles are given", where=_WHERE, fix="give --profiles DIR")
    sku, servers = _sku(simulation), len(state.tables.cluster.nodes)
    jobs = _jobs(trace, simulation.profiles.on(_share(simulation, sku)), sku, sku.gpus * servers)
    rounds = SynergyRounds(
        jobs, state.regime.round, policy.order, MECHANISMS[policy.mechanism], sku, servers,
        consolidate=policy.place == "consolidated", static=policy.mode == "static", on_round=simulation.on_progress,
    )  # fmt: skip
    state.now = rounds.run()
    _write(simulation, rounds)
    simulation.engine.decisions = rounds.count
    left = len(jobs) - len(rounds.ends)
    return {"end_of_run": state.now} | ({"left_behind_a_gap": left} if left else {})


def _sku(simulation: Simulation) -> Sku:
    """The server that all nodes are."""
    skus = {Sku(node.gpus, node.cpus or _CPUS, node.memory or _MEMORY) for node in simulation.state.tables.cluster.nodes}
    if len(skus) != 1 or len(simulation.state.tables.cluster.types) != 1:
        raise RefusedError("Synergy's simulator knows one kind of server", where=_WHERE, fix="use a cluster such as 4x8/24c/500g")
    return skus.pop()


def _share(simulation: Simulation, sku: Sku) -> PerGpu:
    """What belongs to one GPU."""
    storage = simulation.state.tables.cluster.nodes[0].storage or _STORAGE
    return sku.cpus / sku.gpus, sku.memory / sku.gpus, storage / sku.gpus


def _jobs(trace: Trace, networks: Networks, sku: Sku, most: int) -> list[SynergyJob]:
    """The trace in steps; where it has none, so many seconds at the proportional share."""
    frame, jobs = trace.frame, []
    if "model" not in frame.columns:
        raise UsageError("the trace has no column 'model'", where=_WHERE, fix="gantline trace import synergy SRC OUT --profiles DIR")
    stepped = "iterations" in frame.columns
    columns = ("job", "model", "arrival", "gpus", "iterations" if stepped else "duration")
    for row, (job, name, arrival, gpus, amount) in enumerate(zip(*(frame[column].to_list() for column in columns))):
        where = f"{_WHERE}, job '{job}'"
        if name not in networks:
            raise UsageError(f"there is no profile of '{name}'", where=where, fix=near(str(name), networks))
        if not 0 < gpus <= most:
            raise RefusedError(f"it asks for {gpus} GPUs of {most}", where=where, fix="leave it out, or use another cluster")
        profile = networks[name]
        demand, gain = demand_of(profile, int(gpus), sku)
        steps = float(amount) if stepped else float(amount) / profile.step_time
        jobs.append(SynergyJob(row, int(gpus), demand, gain, profile, arrival=arrival, steps=steps, speed=gain, last_ran=arrival))
    return jobs


def _write(simulation: Simulation, rounds: SynergyRounds) -> None:
    """Starts, ends, service and intervals, in the tables and the log of the run."""
    spells, jobs = joined(rounds.spells, rounds.length, rounds.sku, rounds.servers), rounds.jobs
    row, first = [spell[0] for spell in spells], np.full(len(jobs), np.nan)
    np.fmin.at(first, row, [spell[1] for spell in spells])
    attained = np.array([job.attained for job in jobs])
    write_jobs(
        simulation, service=attained / [job.gpus for job in jobs], first_start=first,
        finish=[rounds.ends.get(row, np.nan) for row in range(len(jobs))],
        restarts=np.maximum(np.bincount(row, minlength=len(jobs)) - 1, 0), gpu_time=attained, done=[job.done / job.steps for job in jobs],
    )  # fmt: skip
    simulation.state.tables.rate_changes = np.array([job.changes for job in jobs], dtype=np.int64)
    write_intervals(
        simulation,
        (HeldInterval(*spell, Reason.FINISHED if spell[2] == rounds.ends.get(spell[0]) else Reason.PREEMPTED) for spell in spells),
    )
