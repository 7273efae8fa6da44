"""IRFsim's objects as the columns that the product's functions take."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from tests.oracles.irfsim import CPU, GPU, IRFsim, Task

from gantline.systems.allox.policies.baselines import Pool, Ways, Worth
from gantline.systems.allox.policies.decision import Machines, Waiting, decide
from gantline.systems.allox.policies.matching import State

Tasks = list[Task]


def pool_of(sim: IRFsim) -> Pool:
    used = np.array([user.used for user in sim.users.values()])
    return Pool(np.array(sim.capacity), np.array(sim.free), used, np.ones(len(used)))


def numbers_of(sim: IRFsim) -> dict[str, int]:
    return {name: number for number, name in enumerate(sim.users)}


def needs_of(sim: IRFsim, tasks: Tasks) -> np.ndarray:
    return np.array([[sim.demand(task, CPU), sim.demand(task, GPU)] for task in tasks]).reshape(-1, 2, 3)


def scores_of(sim: IRFsim) -> np.ndarray:
    return np.array([user.score for user in sim.users.values()])


def ways_of(sim: IRFsim, tasks: Tasks | None = None) -> tuple[Ways, Tasks]:
    """The waiting full jobs, in order of arrival unless given, CPU before GPU."""
    if tasks is None:
        waiting = [job for user in sim.users.values() for job in user.jobs]
        tasks = sorted(waiting, key=lambda job: (job.arrival, job.number))
    number = numbers_of(sim)
    count = len(tasks)
    return (
        Ways(
            np.array([number[task.user] for task in tasks], dtype=np.int64),
            np.repeat(np.arange(count), 2),
            np.tile([CPU, GPU], count),
            np.array([task.reported for task in tasks]).reshape(-1),
            needs_of(sim, tasks).reshape(-1, 3),
        ),
        tasks,
    )


def progress_gains(time: np.ndarray, need: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """What running job j on type t adds to its user's score: ``time[j, t]``, ``need[j, t, resource]``.

    Types that a job cannot use (infinite time) add nothing. Of equally fast types the last one counts as the fastest,
    which for (CPU, GPU) is the GPU.
    """
    jobs, types = time.shape
    fastest = types - 1 - np.argmin(time[:, ::-1], axis=1)
    share = Worth.separate(len(capacity)).dominant_share(need[np.arange(jobs), fastest], capacity)
    best = time[np.arange(jobs), fastest]
    slowdown = np.where(np.isfinite(time), best[:, None] / time, 0.0)
    return share[:, None] * slowdown


@dataclass
class Devices:
    """Which task sits on which machine, since the pool of the simulation has no machines; CPU nodes first."""

    seats: list[Task | None]
    kind: np.ndarray
    state: State | None = None
    matchings: int = 0

    @staticmethod
    def of(sim: IRFsim) -> Devices:
        return Devices([None] * (sim.nodes + sim.gpus), np.array([CPU] * sim.nodes + [GPU] * sim.gpus))

    def update(self, sim: IRFsim) -> None:
        running = set(sim.running)
        self.seats = [task if task in running else None for task in self.seats]
        for task in sim.running:
            if task not in self.seats:
                self.seat(task)

    def seat(self, task: Task) -> None:
        self.seats[next(i for i, held in enumerate(self.seats) if held is None and self.kind[i] == task.device)] = task


@dataclass
class AlloX:
    """The product's AlloX as a method of the simulation."""

    alpha: float = 1.0
    age: float = np.inf
    carry: bool = True
    devices: Devices | None = field(default=None)

    def __call__(self, sim: IRFsim) -> None:
        ways, tasks = ways_of(sim)
        self.devices = self.devices or Devices.of(sim)
        self.devices.update(sim)
        idle = np.array([task is None for task in self.devices.seats])
        if not tasks or not idle.any():
            return
        release = np.array([sim.now if task is None else task.started + task.reported[task.device] for task in self.devices.seats])
        time, need = ways.time.reshape(-1, 2), ways.need.reshape(-1, 2, 3)
        gain = progress_gains(time, need, np.array(sim.capacity))
        waiting = Waiting(
            np.array([task.number for task in tasks], dtype=np.int64),
            ways.owner,
            np.array([task.arrival for task in tasks]),
            time,
            gain,
            need[:, :, 2:].copy(),
            np.ones((len(tasks), 2), dtype=np.int64),
        )
        machines = Machines(self.devices.kind, release, idle, np.array(sim.free[2:]))
        score, weight = scores_of(sim), np.ones(len(sim.users))
        state = self.devices.state if self.carry else None
        found, self.devices.state = decide(waiting, machines, score, weight, now=sim.now, alpha=self.alpha, age=self.age, state=state)
        self.devices.matchings += found.matchings
        for row, kind in zip(found.jobs.tolist(), found.kinds.tolist()):
            sim.start(tasks[row], kind)
            self.devices.seat(tasks[row])
