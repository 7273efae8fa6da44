"""IRFsim, the simulator of AlloX (EuroSys 2020), written again in the plainest way from a description of what it does.

Whole seconds, one pool of cores, GPUs and memory, users in the order of their names. It exists to be compared with:
nothing here is fast or general, and every slip of the original is kept, because the numbers published with it contain
them. ``docs/design/irfsim.md`` lists the rules.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path

CPU, GPU = 0, 1
SAMPLE_MEMORY = (16.0, 12.0)
WHOLE_NODE_MEMORY = 64.0


@dataclass(eq=False)
class Task:
    """A job, or one of its four profiling samples: two ways to run, with true and reported times for each."""

    number: int
    user: str
    arrival: float
    units: tuple[float, float]  # cores on the CPU, GPUs on the GPU
    memory: tuple[float, float]
    true: list[float]
    reported: tuple[float, float]
    sample: int | None = None  # the device that a profiling sample is for
    started: float = 0.0
    first_start: float | None = None
    runs_for: float = 0.0
    ends: float = 0.0
    device: int = GPU
    holds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    machine: int | None = None
    ran_as: tuple[float, float] | None = None  # DRFExt's slip: another job's times

    @property
    def faster(self) -> int:
        """The truly faster device; GPU if equal."""
        return CPU if self.true[CPU] < self.true[GPU] else GPU


@dataclass
class User:
    """A queue of waiting tasks, in whatever order the method's last sort left it, and what the running ones use."""

    name: str
    queue: list[Task] = field(default_factory=list)
    used: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    score: float = 0.0  # kept by adding and subtracting, so that rounding decides between equal users

    @property
    def jobs(self) -> list[Task]:
        """The waiting full jobs, in queue order."""
        return [task for task in self.queue if task.sample is None]

    @property
    def first_job(self) -> Task | None:
        return next((task for task in self.queue if task.sample is None), None)


@dataclass(frozen=True)
class Finished:
    """When a job first ran, ended, and on what it ran last."""

    job: int
    user: str
    arrival: float
    start: float
    end: float
    device: int

    @property
    def jct(self) -> float:
        return self.end - self.arrival


class IRFsim:
    """One run: a cluster, the tasks of a trace and a scheduling method called at every event."""

    def __init__(
        self,
        tasks: Iterable[Task],
        method: Method,
        *,
        gpus: int,
        cores_per_node: float = 32.0,
        nodes_per_gpu: float = 1.0,
        alpha: float = 0.1,
        profiling: bool = True,
    ) -> None:
        self.tasks = list(tasks)
        self.method = method
        self.alpha = alpha
        self.profiling = profiling
        self.cores_per_node = cores_per_node
        self.gpus = gpus
        self.nodes = round(gpus * nodes_per_gpu)
        memory = (self.gpus + self.nodes) * WHOLE_NODE_MEMORY
        self.capacity = (self.nodes * cores_per_node, float(gpus), memory)
        self.free = list(self.capacity)
        self.users = {name: User(name) for name in sorted({task.user for task in self.tasks})}
        self.busy_until: list[float | None] = [None] * (self.gpus + self.nodes)
        n = len(self.tasks)
        self.beta = sum(t.units[CPU] * t.true[CPU] / (t.units[GPU] * t.true[GPU]) for t in self.tasks) / n
        self.beta += 32.0 / n
        self.now = 0.0
        self.running: list[Task] = []
        self.finished: list[Finished] = []
        self.unready: dict[float, list[Task]] = {}
        self.samples_left: dict[float, int] = {}

    def run(self) -> list[Finished]:
        """Step from one second in which something happens to the next until every job has ended."""
        pending = sorted(self.tasks, key=lambda task: task.arrival)
        while pending or self.running or any(user.queue for user in self.users.values()):
            times = [task.ends for task in self.running]
            if pending:
                times.append(pending[0].arrival)
            if not times:
                raise RuntimeError(f"nothing runs and nothing arrives, yet tasks wait at {self.now}")
            self.now = max(self.now, min(times))
            self.remove_ended()
            while pending and pending[0].arrival <= self.now:
                self.admit(pending.pop(0))
            if self.start_samples():
                self.method(self)
        return self.finished

    def remove_ended(self) -> None:
        for task in [task for task in self.running if task.ends <= self.now]:
            self.release(task)
            if task.sample is None:
                assert task.first_start is not None
                self.finished.append(Finished(task.number, task.user, task.arrival, task.first_start, self.now, task.device))
                continue
            self.samples_left[task.arrival] -= 1
            if self.samples_left[task.arrival] == 0:
                for job in self.unready.pop(task.arrival):
                    self.users[job.user].queue.append(job)

    def admit(self, job: Task) -> None:
        """Queue a job, or its four samples while the job waits for those of everyone who arrived with it."""
        queue = self.users[job.user].queue
        if not self.profiling:
            queue.append(job)
            return
        for device in (CPU, GPU):
            for share in (0.01, 0.02):
                times = [max(1.0, share * job.true[CPU]), max(1.0, share * job.true[GPU])]
                units = (self.cores_per_node, 1.0)
                reported = (times[CPU], times[GPU])
                queue.append(Task(-job.number, job.user, job.arrival, units, SAMPLE_MEMORY, times, reported, sample=device))
        self.unready.setdefault(job.arrival, []).append(job)
        self.samples_left[job.arrival] = self.samples_left.get(job.arrival, 0) + 4

    def start_samples(self) -> bool:
        """Start samples round by round; False if both kinds met one that does not fit, which ends the event."""
        closed: set[int] = set()
        users = [user for user in self.users.values() if any(task.sample is not None for task in user.queue)]
        r = 0
        while True:
            looked = False
            for user in users:
                waiting = [task for task in user.queue if task.sample is not None]
                if r >= len(waiting):
                    continue
                looked = True
                sample = waiting[r]
                assert sample.sample is not None
                if sample.sample in closed:
                    continue
                if self.fits(sample, sample.sample):
                    self.start(sample, sample.sample)
                else:
                    closed.add(sample.sample)
            if not looked:
                return len(closed) < 2
            r += 1

    def demand(self, task: Task, device: int) -> tuple[float, float, float]:
        """Cores, GPUs and memory of a task on a device."""
        return (
            task.units[CPU] if device == CPU else 0.0,
            task.units[GPU] if device == GPU else 0.0,
            task.memory[device],
        )

    def room(self, demand: tuple[float, float, float]) -> bool:
        free = self.free
        return demand[0] <= free[0] and demand[1] <= free[1] and demand[2] <= free[2]

    def fits(self, task: Task, device: int) -> bool:
        return self.room(self.demand(task, device))

    def start(self, task: Task, device: int, machine: int | None = None) -> None:
        user = self.users[task.user]
        user.queue.remove(task)
        self.running.append(task)
        task.device, task.machine = device, machine
        task.started = self.now
        task.first_start = self.now if task.first_start is None else task.first_start
        task.runs_for = (task.ran_as or task.true)[device]
        task.ends = float(ceil(round(self.now + task.runs_for, 6)))
        task.holds = self.demand(task, device)
        for i, amount in enumerate(task.holds):
            self.free[i] -= amount
            user.used[i] += amount
        if task.sample is None:
            user.score += self.progress(task)

    def release(self, task: Task) -> None:
        user = self.users[task.user]
        self.running.remove(task)
        for i, amount in enumerate(task.holds):
            self.free[i] += amount
            user.used[i] -= amount
        if task.sample is None:
            user.score -= self.progress(task)
        if task.machine is not None:
            self.busy_until[task.machine] = None

    def preempt(self, task: Task) -> None:
        """Put a running job back at the end of its queue with its true times shrunk by the part done."""
        self.release(task)
        left = 1.0 - (self.now - task.started) / task.runs_for
        task.true = [time * left for time in task.true]
        self.users[task.user].queue.append(task)

    def users_by_score(self) -> list[User]:
        """Every user, lowest score first, equal ones by name."""
        return sorted(self.users.values(), key=lambda user: user.score)

    def progress(self, task: Task) -> float:
        """What a running job adds to its user's score: its dominant share, discounted on the slower device."""
        fast = task.faster
        share = max(need / whole for need, whole in zip(self.demand(task, fast), self.capacity))
        return share if task.device == fast else share * (task.true[fast] / task.true[task.device])


Method = Callable[[IRFsim], None]


def load(path: Path) -> list[Task]:
    """Read a trace in the columns of the reference files."""
    with path.open() as file:
        return [
            Task(
                int(row["job_id"]),
                row["user"],
                float(row["arrival_s"]),
                (float(row["cpus"]), float(row["gpus"])),
                (float(row["mem_gb"]), float(row["gpu_job_mem_gb"])),
                [float(row["cpu_time_s"]), float(row["gpu_time_s"])],
                (
                    float(row["cpu_time_s"]) * (1.0 + float(row["cpu_err"])),
                    float(row["gpu_time_s"]) * (1.0 + float(row["gpu_err"])),
                ),
            )
            for row in csv.DictReader(file)
        ]
