"""The rounds of Shockwave's simulator (the same pass as Gavel's, on one type), and a recorded schedule for them."""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from gantline.core.errors import TraceError, UsageError
from gantline.core.reasons import Reason
from gantline.engine.imitations.intervals import HeldInterval
from gantline.systems.shockwave.imitation.jobs import ShockwaveJob
from gantline.traces.unpack import read_text

# The rounds of Shockwave's simulator: close, change batch sizes, admit, choose, start (the same pass as Gavel's, on one type).


_RESUME = 20.0  # seconds that a job loses which did not run in the round before
_NEARLY = 5.0  # tasks that are shorter than a round by more than this are never charged
_FAILURES = 5  # in a row, after which a job is dropped


class Chooser(ABC):
    """Which jobs run in the next round."""

    def round_ended(self, rounds: ShockwaveRounds, closed: Sequence[ShockwaveJob]) -> None:  # noqa: B027
        """A round has been closed; called before arrivals are let in."""

    @abstractmethod
    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        """The jobs to start, in the order in which they get devices."""


@dataclass(frozen=True)
class ShockwaveTask:
    """A job in one round."""

    job: ShockwaveJob
    begin: float
    finish: float
    steps: int


@dataclass
class ShockwaveRounds:
    """The state of a run."""

    jobs: list[ShockwaveJob]
    gpus: int
    chooser: Chooser
    length: float = 120.0
    patience: float = 1.5  # a job that has run so many times its profiled time is taken for complete
    on_round: Callable[[float, int, int], None] | None = None  # time, jobs that have arrived, jobs inside
    clock: float = 0.0
    passes: int = 0
    active: list[ShockwaveJob] = field(default_factory=list)  # in order of admission
    running: list[ShockwaveTask] = field(default_factory=list)
    changed: bool = False  # a job came, left or failed since the last choice
    counts: list[int] = field(default_factory=list)  # active jobs, per pass
    lives: dict[int, tuple[int, int]] = field(default_factory=dict)  # job -> passes [admission, completion)
    busy: float = 0.0  # GPU-seconds
    spells: dict[int, list[HeldInterval]] = field(default_factory=dict)  # of each job, without devices; rounds in a row are one

    def __post_init__(self) -> None:
        self._waiting = sorted(self.jobs, key=lambda job: (job.arrival, job.index))
        self._began = self._ended = 0.0  # the round that is closed: since the end of the one before, though no job may have run for a while

    def run(self, until: float = inf) -> None:
        """To the end: no job is active, though arrivals may be left (as in the original)."""
        while self.step() and self.clock <= until:
            pass

    def step(self) -> bool:
        """One pass; whether there is another."""
        if self.running:
            self._began, self._ended = self._ended, max(task.finish for task in self.running)
            self.clock = self._ended
        elif self._waiting:
            self.clock = max(self.clock, self._waiting[0].arrival)
        closed = self._close()
        for job in closed:
            job.change_batch()
        for job in self.active:
            job.note_request()
        if self.clock != 0.0:
            self.chooser.round_ended(self, closed)
        while self._waiting and self._waiting[0].arrival <= self.clock:
            self._admit(self._waiting.pop(0))
        self.counts.append(len(self.active))
        if not self.active:
            return False
        self.running = [self._start(job) for job in self.chooser.choose(self)]
        self.passes += 1
        if self.on_round is not None:
            self.on_round(self.clock, len(self.jobs) - len(self._waiting), len(self.active))
        return bool(self.running or self._waiting)

    def _admit(self, job: ShockwaveJob) -> None:
        job.admitted = self.clock
        self.lives[job.index] = (self.passes, self.passes)
        self.active.append(job)
        self.changed = True

    def _start(self, job: ShockwaveJob) -> ShockwaveTask:
        speed = job.throughput
        steps = min(int(speed * self.length), job.left)
        job.started.append(self.passes)
        if job.first_start != job.first_start:
            job.first_start = self.clock
        return ShockwaveTask(job, self.clock, max(self.clock, self.clock + steps / speed), steps)

    def _close(self) -> list[ShockwaveJob]:
        closed = []
        for task in sorted(self.running, key=lambda task: (-task.finish, task.job.index)):
            self._credit(task)
            closed.append(task.job)
        self.running = []
        return closed

    def _credit(self, task: ShockwaveTask) -> None:
        job, steps, spent = task.job, task.steps, task.finish - self._began
        ran_before = len(job.started) > 1 and job.started[-2] == self.passes - 2
        if self.passes != 1 and not ran_before and spent > self.length - _NEARLY:
            steps, spent = int(steps * (spent - _RESUME) / spent), spent - _RESUME
        if steps <= 0 and spent <= 0:
            job.failures += 1
            job.last_turn = 0.0
            self.changed = True
            if job.failures == _FAILURES:
                self._end(job, task)
            else:
                self._note(task, Reason.PREEMPTED)
            return
        job.failures = 0
        job.done += steps
        job.last_turn = spent
        job.run_time += spent
        self.busy += spent * job.gang
        job.measured.append((self.passes, steps / spent, job.batch))
        if job.left <= 0 or job.run_time > int(self.patience * int(job.exclusive)):
            self._end(job, task)
        else:
            self._note(task, Reason.PREEMPTED)

    def _end(self, job: ShockwaveJob, task: ShockwaveTask) -> None:
        job.finish = task.finish
        self.active.remove(job)
        self.lives[job.index] = (self.lives[job.index][0], self.passes)
        self.changed = True
        self._note(task, Reason.FINISHED)

    def _note(self, task: ShockwaveTask, reason: Reason) -> None:
        """A task that has closed, as a spell of its job or as more of the last one."""
        job, begin = task.job, task.begin
        spells = self.spells.setdefault(job.index, [])
        if spells and job.started[-1] == job.started[-2] + 1:
            begin = spells.pop().begin
        spells.append(HeldInterval(job.index, begin, task.finish, (), reason))


# A recorded schedule: which jobs were started in which round.


class RecordedRounds(Chooser):
    """Starts in every round the jobs that the table names, as far as they are still present."""

    def __init__(self, path: str, jobs: Sequence[ShockwaveJob]) -> None:
        if not path:
            raise UsageError("no table is given", where="policy 'recorded'", fix="--set table=FILE.csv with round,jobs")
        self._rounds = _read(Path(path), len(jobs))

    def choose(self, rounds: ShockwaveRounds) -> list[ShockwaveJob]:
        wanted = self._rounds.get(rounds.passes, ())
        active = {job.index: job for job in rounds.active}
        chosen = [active[index] for index in wanted if index in active]
        used = sum(job.gang for job in chosen)
        if used > rounds.gpus:
            raise TraceError(f"in round {rounds.passes} jobs hold {used} GPUs, but there are {rounds.gpus}", file="the recorded table")
        return chosen


def _read(path: Path, jobs: int) -> dict[int, list[int]]:
    """Jobs by round; jobs are numbers in the order of the trace, with spaces between them."""
    reader = csv.DictReader(io.StringIO(read_text(path)))
    names = [name for name in (reader.fieldnames or ()) if name in ("jobs", "job_indices")]
    if "round" not in (reader.fieldnames or ()) or not names:
        raise TraceError("has no columns 'round' and 'jobs'", file=str(path), line=1, fix="write round,jobs with jobs as in 0 3 7")
    found: dict[int, list[int]] = {}
    for line, row in enumerate(reader, start=2):
        try:
            number, members = int(row["round"]), [int(word) for word in (row[names[0]] or "").split()]
        except (TypeError, ValueError):
            raise TraceError("holds no round and jobs", file=str(path), line=line, fix="write 12,0 3 7") from None
        for index in members:
            if not 0 <= index < jobs:
                raise TraceError(f"there is no job {index} among {jobs}", file=str(path), line=line, field=names[0])
        if number in found:
            raise TraceError(f"round {number} stands twice", file=str(path), line=line, field="round")
        found[number] = members
    return found
