"""Training with parameter servers: speed by servers, workers and their nodes (Optimus, EuroSys 2018).

    asynchronous:  f(p, w) = w / (t0 + t1 w / p + t2 w + t3 p)
    synchronous:   f(p, w) = 1 / (t0 M / w + t1 + t2 w / p + t3 w + t4 p)          M: batch of a step over all workers

Both are linear in t >= 0 as w / f and 1 / f, so that samples of (p, w, f) are fitted by non-negative least squares
(section 3.2). Where the cluster has bandwidths, the term in w / p speaks of nodes of one rack, and grows or shrinks
with the links between servers and workers.

A server sends and receives the parameters of every worker through its own port, so a step waits for the server whose
workers are farthest in the mean (theorem 1: few nodes, with equal numbers of both on each). A synchronous job is as
slow as its slowest worker, an asynchronous one loses what that worker does not do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError, near
from gantline.core.grant import Grant
from gantline.core.rng import stream
from gantline.core.topology import slowest_link
from gantline.models.convergence import LossCurve
from gantline.models.model import Gangs, Observed, PerformanceModel

SERVER, WORKER = "ps", "worker"


class Straggling(NamedTuple):
    """How likely a job's workers are slow on a node (something else is at work there), and how fast they are then."""

    chance: float = 0.0
    speed: float = 1.0

    def on(self, job: str, node: int) -> float:
        """The speed of a job's workers on a node: always the same one."""
        return self.speed if self.chance > 0.0 and stream(0, node, f"slow/{job}").random() < self.chance else 1.0


NO_STRAGGLERS = Straggling()


class TaskNodes(NamedTuple):
    """The node of each server and of each worker."""

    servers: tuple[int, ...]
    workers: tuple[int, ...]

    @staticmethod
    def of(gangs: Gangs, at: int) -> TaskNodes:
        """Of one gang; without roles it has a server beside every worker."""
        grant = gangs.grants[at]
        if grant is None or not grant.workers:
            nodes = gangs.nodes_by_rank(at)
            return TaskNodes(nodes, nodes)
        servers, workers = (tuple(one.node for one in grant.workers if one.role == role) for role in (SERVER, WORKER))
        return TaskNodes(servers, workers)

    def crossed(self, cluster: Cluster) -> float:
        """How many times longer its exchanges take than between nodes of one rack; 1 where the cluster has no bandwidths."""
        if not cluster.bandwidths.known or not self.servers or not self.workers:
            return 1.0
        where, means = Counter(self.workers), []
        for server in set(self.servers):
            paces = [count * cluster.bandwidths.rack / slowest_link(cluster, (server, node)) for node, count in where.items()]
            means.append(sum(paces) / len(self.workers))
        return max(means)

    def speeds(self, job: str, straggling: Straggling) -> list[float]:
        """The speed of each worker, of one."""
        return [straggling.on(job, node) for node in self.workers]


def left_of(speeds: Sequence[float], mode: str) -> float:
    """What workers of such speeds leave of the speed of a job."""
    if not speeds:
        return 1.0
    return min(speeds) if mode == "sync" else sum(speeds) / len(speeds)


TERMS = {"sync": 5, "async": 4}
PROFILED = ((1, 1), (1, 2), (2, 1), (2, 4), (4, 2), (4, 4))  # servers and workers of the short runs before a job starts
_KEPT_LOSSES = 60
_KEPT_JOBS = 2000


@dataclass(frozen=True, slots=True)
class ServerSpeed:
    """Steps per second by servers and workers."""

    mode: str
    terms: tuple[float, ...]
    batch: float = 1.0

    def __post_init__(self) -> None:
        if len(self.terms) != TERMS[self.mode] or not all(term >= 0.0 for term in self.terms) or not sum(self.terms) > 0.0:
            fix = f"{TERMS[self.mode]} numbers, zero or more, joined by /"
            raise UsageError(f"{self.mode}={'/'.join(map(str, self.terms))} says no speed", where="scaling", fix=fix)
        if not self.batch > 0.0:
            raise UsageError(f"a batch of {self.batch:g}", where="scaling", fix="batch=M, above zero")

    def speed(self, servers: int, workers: int, crossed: float = 1.0) -> float:
        """Steps per second; zero without a server or a worker. `crossed`: how many times longer exchanges take than in a rack."""
        if servers < 1 or workers < 1:
            return 0.0
        time = sum(term * part for term, part in zip(self.terms, _parts(self.mode, servers, workers, self.batch)))
        time += self.terms[1 if self.mode == "async" else 2] * workers / servers * (crossed - 1.0)
        return (workers if self.mode == "async" else 1.0) / max(time, 1e-12)


def _parts(mode: str, servers: float, workers: float, batch: float) -> tuple[float, ...]:
    if mode == "async":
        return (1.0, workers / servers, workers, servers)
    return (batch / workers, 1.0, workers / servers, workers, servers)


def fit_speed(mode: str, batch: float, samples: Sequence[Sequence[float]]) -> ServerSpeed:
    """The terms that fit (servers, workers, steps per second) best."""
    rows = [_parts(mode, p, w, batch) for p, w, _ in samples]
    times = [(w if mode == "async" else 1.0) / f for _, w, f in samples]
    scale = np.array(times)  # relative errors: slow samples must not drown the others
    from scipy.optimize import nnls  # slow to import: a plain run fits nothing

    found, _ = nnls(np.array(rows) / scale[:, None], np.ones(len(times)))
    return ServerSpeed(mode, tuple(found.tolist()) if found.any() else (1.0,) * TERMS[mode], batch)


@dataclass(frozen=True, slots=True)
class ServerJob:
    """The truth about one job: its speed, how many epochs it takes, and how its loss falls."""

    speed: ServerSpeed
    epochs: float
    loss: LossCurve
    slow: Straggling = NO_STRAGGLERS

    def __post_init__(self) -> None:
        if not 0.0 <= self.slow.chance <= 1.0 or not 0.0 < self.slow.speed <= 1.0:
            raise UsageError(f"slow={'/'.join(f'{part:g}' for part in self.slow)}", where="scaling", fix="chance and speed: slow=0.05/0.3")
        if not self.epochs > 0.0 or not self.loss.slope > 0.0 or not self.loss.start > 0.0 or self.loss.floor < 0.0:
            raise UsageError("epochs and loss say no training", where="scaling", fix="for instance epochs=40;loss=0.5/1/0.1")

    @property
    def drop(self) -> float:
        """What the user calls converged: what the epoch after the last would gain."""
        return self.loss.loss(self.epochs) - self.loss.loss(self.epochs + 1.0)

    @staticmethod
    def parse(text: str) -> ServerJob:
        """From ``sync=1.02/2.78/4.92/0/0.02;batch=20;epochs=40;loss=0.5/1/0.1`` (or ``async=`` with four numbers)."""
        known = ("sync", "async", "batch", "epochs", "loss", "slow")
        values: dict[str, tuple[float, ...]] = {}
        for part in text.split(";"):
            name, _, amount = (piece.strip() for piece in part.partition("="))
            if name not in known:
                raise UsageError(f"there is no '{part.strip()}'", where="scaling", fix=near(name, known))
            try:
                values[name] = tuple(float(piece) for piece in amount.split("/"))
            except ValueError:
                raise UsageError(f"'{part.strip()}' is no list of numbers", where="scaling", fix="numbers joined by /") from None
        loss = values.get("loss", (0.5, 1.0, 0.1))
        if len(loss) != 3:
            raise UsageError(f"loss has {len(loss)} numbers", where="scaling", fix="slope, start and floor: loss=0.5/1/0.1")
        mode = "async" if "async" in values else "sync"
        speed = ServerSpeed(mode, values.get(mode, ()), values.get("batch", (1.0,))[0])
        slow = values.get("slow", (0.0, 1.0))
        if len(slow) != 2:
            raise UsageError(f"slow has {len(slow)} numbers", where="scaling", fix="chance and speed: slow=0.05/0.3")
        return ServerJob(speed, values.get("epochs", (40.0,))[0], LossCurve(*loss), Straggling(*slow))

    def __str__(self) -> str:
        text = "/".join(f"{term:g}" for term in self.speed.terms)
        loss = "/".join(f"{value:g}" for value in self.loss)
        slow = f";slow={self.slow.chance:g}/{self.slow.speed:g}" if self.slow.chance else ""
        return f"{self.speed.mode}={text};batch={self.speed.batch:g};epochs={self.epochs:g};loss={loss}{slow}"


class DeclaredFactors(NamedTuple):
    """What a user knows of a job: how it trains, its batch, when it counts as converged, steps of an epoch."""

    mode: str
    batch: float
    drop: float
    steps: float


@dataclass(frozen=True)
class ServerModel(PerformanceModel):
    """Jobs with parameter servers. A gang of its own has a server for every worker; `noise` is the error of what is measured.

    What is learned of a job: its speed at each (servers, workers) that it has run with, its loss after each epoch, node and speed of its
    workers.
    """

    jobs: Mapping[str, ServerJob]
    work: Mapping[str, float]  # of each job in all
    unit: Mapping[str, float]  # steps per second at speed one
    noise: float = 0.02
    server_cpus: float = 3.0
    server_memory: float = 9.0
    worker_cpus: float = 2.0
    worker_memory: float = 8.0

    def _speed(self, job: str, servers: int, workers: int) -> float:
        return self.jobs[job].speed.speed(servers, workers)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate = gangs.divided.copy()
        for at, job in enumerate(gangs.jobs):
            if job in self.jobs:
                rate[at] = self._true(gangs, at, job) / self.unit[job]
        return rate, np.full(len(gangs), np.inf)

    def _true(self, gangs: Gangs, at: int, job: str) -> float:
        """Steps per second of a gang where it sits."""
        tasks, truth = TaskNodes.of(gangs, at), self.jobs[job]
        alone = truth.speed.speed(*_held(gangs.grants[at], int(gangs.gpus[at])), tasks.crossed(gangs.cluster))
        return alone * left_of(tasks.speeds(job, truth.slow), truth.speed.mode)

    def rate(self, job: str, type: int, gpus: int) -> float | None:
        return self._speed(job, gpus, gpus) / self.unit[job] if job in self.jobs else None

    def _measured(self, job: str, value: float, *what: float) -> float:
        if self.noise <= 0.0:
            return value
        return value * float(np.exp(self.noise * stream(0, 0, f"{job}/{'/'.join(map(str, what))}").standard_normal()))

    def profiled(self, job: str) -> list[list[float]]:
        """(servers, workers, steps per second) of the short runs that Optimus makes before a job starts."""
        return [[p, w, self._measured(job, self._speed(job, p, w), p, w)] for p, w in PROFILED]

    def declared(self, job: str) -> DeclaredFactors:
        """What the user says of a job."""
        truth = self.jobs[job]
        return DeclaredFactors(truth.speed.mode, truth.speed.batch, truth.drop, self.work[job] / truth.epochs * self.unit[job])

    def progress(self, job: str, done: float) -> float:
        """Epochs that so much work is."""
        return done / self.work[job] * self.jobs[job].epochs

    def observe(self, gangs: Gangs) -> Observed | None:
        """Speeds and losses of running jobs, beside what was learned of them earlier."""
        known: dict[str, Any] = dict(gangs.learned or {})
        for at, job in enumerate(gangs.jobs):
            if job not in self.jobs:
                continue
            before = known.get(job, {"speeds": [], "losses": [], "workers": []})
            servers, workers = _held(gangs.grants[at], int(gangs.gpus[at]))
            speeds, losses = before["speeds"], before["losses"]
            works, tasks = gangs.divided[at] > 0.0 and gangs.since[at] <= gangs.now, TaskNodes.of(gangs, at)
            each = tasks.speeds(job, self.jobs[job].slow)
            fresh_size = not any([p, w] == [servers, workers] for p, w, _ in speeds)
            if works and fresh_size and min(each, default=1.0) == 1.0:  # with a straggler it would speak of the straggler
                value = self._measured(job, self._true(gangs, at, job), servers, workers)
                speeds = [*speeds, [servers, workers, value]]
            reached, last = int(self.progress(job, float(gangs.done[at]))), int(losses[-1][0]) if losses else 0
            fresh = range(max(last + 1, reached - _KEPT_LOSSES), reached + 1)
            truth = self.jobs[job].loss
            losses = [*losses, *([float(k), self._measured(job, truth.loss(k), -k)] for k in fresh)][-_KEPT_LOSSES:]
            known.pop(job, None)
            reports = [[node, speed] for node, speed in zip(tasks.workers, each)] if works else []
            known[job] = {"speeds": speeds, "losses": losses, "workers": reports}
        return Observed(learned=dict(list(known.items())[-_KEPT_JOBS:]))  # the jobs that ran last


def _held(grant: Grant | None, gpus: int) -> tuple[int, int]:
    """Servers and workers of a gang."""
    if grant is None or not grant.workers:
        return gpus, gpus
    counts = [sum(worker.role == role for worker in grant.workers) for role in (SERVER, WORKER)]
    return counts[0], counts[1]
