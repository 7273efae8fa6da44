"""IRFsim, the simulator of AlloX (EuroSys 2020): whole seconds, one pool of cores, GPUs and memory, jobs profiled first.

Every slip of the original is kept, because the numbers published with it contain them; docs/design/irfsim.md lists the rules.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil, inf

CPU, GPU, MEMORY = 0, 1, 2
SAMPLE_MEMORY = [16.0, 12.0]  # GB of a sample on a CPU node and on a GPU
SAMPLE_SHARES = (0.01, 0.02)


@dataclass(eq=False, slots=True)
class IrfsimTask:
    """A job, or one of its four profiling samples. Lists hold a value for the CPU and one for the GPU."""

    row: int
    user: int  # users are numbered in the order of their names
    arrival: float
    number: int  # what AlloX' hash table sees
    units: list[float]  # cores, GPUs
    memory: list[float]
    true: list[float]
    reported: list[float]
    sample: int = -1  # the device that a profiling sample is for; -1 for jobs
    device: int = GPU
    started: float = 0.0
    first_start: float = float("nan")
    runs_for: float = 0.0
    ends: float = 0.0
    finish: float = float("nan")
    holds: tuple[float, float, float] = (0.0, 0.0, 0.0)
    gain: float = 0.0  # what it adds to its user's score while it runs
    machine: int = -1  # of those that AlloX started; -1 otherwise
    span: TaskInterval | None = None


@dataclass(slots=True)
class TaskInterval:
    """An interval in which a task ran."""

    task: IrfsimTask
    device: int
    begin: float
    end: float = inf


@dataclass(slots=True)
class User:
    """A queue of waiting tasks, in whatever order the method's last sort left it, and what the running ones use."""

    weight: float
    queue: list[IrfsimTask] = field(default_factory=list)
    used: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    score: float = 0.0  # kept by adding and subtracting, so that rounding decides between equal users

    @property
    def jobs(self) -> list[IrfsimTask]:
        """The waiting full jobs, in queue order."""
        return [task for task in self.queue if task.sample < 0]

    @property
    def first_job(self) -> IrfsimTask | None:
        return next((task for task in self.queue if task.sample < 0), None)


class IRFsim:
    """One run: a pool of resources, the jobs of a trace in order of arrival, and users in the order of their names."""

    def __init__(
        self, jobs: list[IrfsimTask], weights: list[float], *, gpus: int, nodes: int, cores: float, memory: float, profiling: bool
    ) -> None:
        self.jobs, self.gpus, self.cores, self.profiling = jobs, gpus, cores, profiling
        self.capacity = (nodes * cores, float(gpus), memory)
        self.free = list(self.capacity)
        self.users = [User(weight) for weight in weights]
        self.kinds = [GPU] * gpus + [CPU] * nodes
        self.booked = [-inf] * len(self.kinds)  # when a machine is free by reported times, if AlloX put a job on it
        self.now = 0.0
        self.arrived = self.finished = self.events = 0
        self.running: list[IrfsimTask] = []
        self.spans: list[TaskInterval] = []
        self.unready: dict[float, list[IrfsimTask]] = {}  # by arrival, and how many samples of these jobs have not ended
        self.samples_left: dict[float, int] = {}

    def run(self, method: Callable[[IRFsim], None], report: Callable[[], None]) -> None:
        """Step from one second in which something happens to the next, until nothing runs and nothing is to come."""
        while self.running or self.arrived < len(self.jobs):
            arrival = self.jobs[self.arrived].arrival if self.arrived < len(self.jobs) else inf
            self.now = max(self.now, min([arrival, *(task.ends for task in self.running)]))
            if self.events % max(len(self.jobs) // 100, 1) == 0:
                report()
            self.events += 1
            self._remove_ended()
            while self.arrived < len(self.jobs) and self.jobs[self.arrived].arrival <= self.now:
                self._admit(self.jobs[self.arrived])
                self.arrived += 1
            if self._start_samples():
                method(self)

    def _remove_ended(self) -> None:
        """Tasks that end by now leave in the order in which they started; the last sample of a group makes its jobs ready."""
        for task in [task for task in self.running if task.ends <= self.now]:
            self._release(task)
            if task.sample < 0:
                task.finish = self.now
                self.finished += 1
                continue
            self.samples_left[task.arrival] -= 1
            if self.samples_left[task.arrival] == 0:
                for job in self.unready.pop(task.arrival):
                    self.users[job.user].queue.append(job)

    def _admit(self, job: IrfsimTask) -> None:
        """Queue a job, or its four samples while the job waits for those of every job that arrived with it."""
        queue = self.users[job.user].queue
        if not self.profiling:
            queue.append(job)
            return
        for device in (CPU, GPU):
            for share in SAMPLE_SHARES:
                times = [max(1.0, share * time) for time in job.true]
                queue.append(IrfsimTask(job.row, job.user, job.arrival, -1, [self.cores, 1.0], SAMPLE_MEMORY, times, times, sample=device))
        self.unready.setdefault(job.arrival, []).append(job)
        self.samples_left[job.arrival] = self.samples_left.get(job.arrival, 0) + 4

    def _start_samples(self) -> bool:
        """Start samples round by round; False if both kinds met one that does not fit, which ends the event.

        Round r looks at each user's r-th sample among those still queued, so every start makes the next round step over one.
        """
        closed: set[int] = set()
        waiting = [[task for task in user.queue if task.sample >= 0] for user in self.users] if self.profiling else []
        turn = 0
        while any(turn < len(samples) for samples in waiting):
            for samples in waiting:
                if turn >= len(samples) or samples[turn].sample in closed:
                    continue
                if self.fits(samples[turn], samples[turn].sample):
                    sample = samples.pop(turn)
                    self.start(sample, sample.sample)
                else:
                    closed.add(samples[turn].sample)
                if len(closed) == 2:
                    return False
            turn += 1
        return True

    def fits(self, task: IrfsimTask, device: int) -> bool:
        """Whether the pool has room, without any tolerance."""
        return task.units[device] <= self.free[device] and task.memory[device] <= self.free[MEMORY]

    def start(self, task: IrfsimTask, device: int, like: IrfsimTask | None = None) -> None:
        """Run a queued task on a device, with the demand and for the time of another one where a method slips."""
        user = self.users[task.user]
        user.queue.remove(task)
        self.running.append(task)
        if like is not None:
            task.units = [like.units[CPU], task.units[GPU]]
            task.memory = [like.memory[CPU], task.memory[GPU]]
        task.device, task.started = device, self.now
        if task.first_start != task.first_start:
            task.first_start = self.now
        task.runs_for = (like or task).true[device]
        task.ends = float(ceil(round(self.now + task.runs_for, 6)))
        cores, gpus = (task.units[CPU], 0.0) if device == CPU else (0.0, task.units[GPU])
        task.holds = (cores, gpus, task.memory[device])
        for resource, amount in enumerate(task.holds):
            self.free[resource] -= amount
            user.used[resource] += amount
        task.gain = self._progress(task) if task.sample < 0 else 0.0
        user.score += task.gain
        span = task.span
        if span is not None and span.end == self.now and span.device == device:  # it was stopped in this instant, and goes on
            span.end = inf
        else:
            task.span = TaskInterval(task, device, self.now)
            self.spans.append(task.span)

    def _progress(self, task: IrfsimTask) -> float:
        """What a running job adds to its user's score: its dominant share on the truly faster device, discounted on the slower."""
        fast = CPU if task.true[CPU] < task.true[GPU] else GPU
        share = max(task.units[fast] / self.capacity[fast], task.memory[fast] / self.capacity[MEMORY])
        here = task.true[task.device]
        if task.device != fast and here > 0.0:  # nothing is left of one that was stopped at its very end
            share *= task.true[fast] / here
        return share

    def _release(self, task: IrfsimTask) -> None:
        """Give back what a running task holds."""
        self.running.remove(task)
        user = self.users[task.user]
        for resource, amount in enumerate(task.holds):
            self.free[resource] += amount
            user.used[resource] -= amount
        user.score -= task.gain
        if task.machine >= 0:
            self.booked[task.machine], task.machine = -inf, -1
        assert task.span is not None
        task.span.end = self.now

    def preempt_jobs(self) -> None:
        """Put all running jobs back at the end of their queues, with their true times shrunk by the part done."""
        for task in [task for task in self.running if task.sample < 0]:
            self._release(task)
            left = 1.0 - (self.now - task.started) / task.runs_for if task.runs_for > 0.0 else 0.0
            task.true = [time * left for time in task.true]
            self.users[task.user].queue.append(task)
