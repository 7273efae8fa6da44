"""The baselines of Sia's simulator that run tuned jobs (Gavel, Themis, Shockwave), and a recorded table in place of a scheduler."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import RefusedError, TraceError, UsageError, near
from gantline.models.goodput.batch import gain
from gantline.models.goodput.measured import packed_shape
from gantline.models.solvers.linear_programs import LinearProgram, solve
from gantline.policies.node_classes import NodeClass
from gantline.systems.shockwave.imitation.planner import fair_target
from gantline.systems.shockwave.imitation.shares import Memory, finish_time_fairness
from gantline.systems.shockwave.policies import PlanningWindow, Shockwave, fair_window, plan_with_cut, priorities
from gantline.systems.sia.imitation.deciding import measured_speed, own_step
from gantline.systems.sia.imitation.jobs import SiaJob
from gantline.systems.sia.imitation.rounds import RoundScheduler, SiaGrant
from gantline.traces.unpack import read_text

# Gavel's max-sum-throughput on tuned jobs in the clock of Sia's simulator: shares of time by a linear program, then turns by priority.
#
# Every job keeps the GPUs and the batch of the trace (Sia's "TunedJobs"). The round mechanism is that of Gavel's paper
# (OSDI 2020, sections 4 and 5): priority is the share that a job should have of a type over the share of its rounds
# that it has had, the highest goes first, and idle devices go to jobs that fit. Speeds are measured, and normalised by
# each job's slowest type. The program is solved by an interior point method without crossover, as the artifact's solver
# does, so jobs that are alike have equal shares.


class GavelScheduler(RoundScheduler):
    """Shares of time per job and class of nodes, and the rounds that each job has had of them."""

    def __init__(self, classes: Sequence[NodeClass]) -> None:
        self._classes = classes
        self._speeds: dict[str, Floats] = {}
        self._had: dict[str, Floats] = {}
        self._rounds: dict[str, int] = {}

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """One round: the job that should have had more goes first."""
        speeds = np.stack([self._speed(job) for job in jobs])
        shares = self._shares(jobs, speeds)
        priority = np.empty_like(shares)
        for i, job in enumerate(jobs):
            had = self._had.setdefault(job.asked.name, np.zeros(len(self._classes)))
            priority[i] = shares[i] / np.maximum(had / max(self._rounds.get(job.asked.name, 0), 1), 1e-9)
        free = [one.gpus for one in self._classes]
        chosen: list[SiaGrant | None] = [None] * len(jobs)
        self._give(jobs, np.where(shares > 1e-6, priority, 0.0), free, chosen)
        self._give(jobs, speeds, free, chosen)  # what is left, where it is fastest
        for job, grant in zip(jobs, chosen, strict=True):
            self._rounds[job.asked.name] = self._rounds.get(job.asked.name, 0) + 1
            if grant is not None:
                self._had[job.asked.name][grant.group] += 1
        return chosen

    def _speed(self, job: SiaJob) -> Floats:
        """Samples a second per class over those on the slowest; 0 where the job cannot run."""
        name = job.asked.name
        if name not in self._speeds:
            found = np.zeros(len(self._classes))
            for k, one in enumerate(self._classes):
                if one.type in job.types and one.gpus >= job.asked.gpus and job.asked.only in ("", one.type):
                    whole, rest = divmod(job.asked.gpus, one.size)
                    found[k] = measured_speed(job, job.types[one.type], (one.size,) * whole + ((rest,) if rest else ()))
            self._speeds[name] = found / found[found > 0].min()
        return self._speeds[name]

    def _shares(self, jobs: Sequence[SiaJob], speeds: Floats) -> Floats:
        """The shares of time that make the sum of speeds largest."""
        n, kinds = speeds.shape
        gpus = np.array([job.asked.gpus for job in jobs], dtype=np.float64)
        each = sparse.kron(sparse.eye_array(n), np.ones((1, kinds)))
        fits = sparse.kron(gpus[None, :], sparse.eye_array(kinds))
        upper = np.concatenate([np.ones(n), [float(one.gpus) for one in self._classes]])
        program = LinearProgram(
            speeds.ravel(),
            sparse.csc_array(sparse.vstack([each, fits])),
            np.full(n + kinds, -np.inf),
            upper,
            np.zeros(n * kinds),
            (speeds > 0).astype(np.float64).ravel(),
        )
        return solve(program, "interior").x.reshape(n, kinds)

    def _give(self, jobs: Sequence[SiaJob], rank: Floats, free: list[int], chosen: list[SiaGrant | None]) -> None:
        """Pairs of job and class by descending rank, for jobs that have nothing yet."""
        for flat in np.argsort(-rank, axis=None, kind="stable").tolist():
            i, k = divmod(flat, rank.shape[1])
            if rank[i, k] <= 0.0:
                break
            if chosen[i] is None and jobs[i].asked.gpus <= free[k]:
                chosen[i] = SiaGrant(k, jobs[i].asked.gpus)
                free[k] -= jobs[i].asked.gpus


# Tuned jobs under Themis and Shockwave in the clock of Sia's simulator: the other baselines of the paper's table 4, on one GPU type.
#
# Every job keeps the GPUs and the batch of the trace. Themis is the policy of that name in Shockwave's artifact: the
# smallest worst ratio of finish times gives shares of time, and rounds follow them as under Gavel. Shockwave plans a
# window of rounds from what the profiles say is left; batches never change here, so there is nothing to predict, and
# nothing is given that a job's profile does not hold.


@dataclass(frozen=True)
class TunedJob:
    """A job as rules for shares read it: work is seconds on its own GPUs."""

    index: int
    gang: int
    arrival: float
    left: float
    throughput: float = 1.0


class EpochTimes:
    """Seconds of each epoch of tuned jobs, and of all that is left."""

    def __init__(self, classes: Sequence[NodeClass]) -> None:
        if len(classes) != 1:
            fix = "use one type and size of nodes, such as aws:16x4, or --policy sia"
            raise RefusedError("Themis and Shockwave know one kind of nodes", where="--regime sia", fix=fix)
        self.nodes = classes[0]
        self._known: dict[str, Floats] = {}

    def of(self, job: SiaJob) -> Floats:
        """Seconds of each epoch."""
        if job.asked.name not in self._known:
            measured, shape = job.types[self.nodes.type], packed_shape(job.asked.gpus, self.nodes.size)
            training, (total, seconds) = job.training, own_step(job, measured, shape, sum(shape))
            worth = np.array([gain(*training.noise(total, epoch), total / training.base) for epoch in range(training.epochs)])
            self._known[job.asked.name] = np.diff(training.edges, prepend=0.0) * (seconds * job.charges.slowdown) / worth
        return self._known[job.asked.name]

    def left(self, job: SiaJob) -> float:
        """Seconds until its end."""
        seconds, at = self.of(job), job.epoch
        begun = job.edges[at - 1] if at else 0.0
        rest = (job.edges[at] - job.progress) / (job.edges[at] - begun)
        return float(rest * seconds[at] + seconds[at + 1 :].sum())


class ThemisScheduler(GavelScheduler):
    """Gavel's rounds with the shares of finish-time fairness."""

    def __init__(self, classes: Sequence[NodeClass]) -> None:
        super().__init__(classes)
        self._times, self._memory, self._now = EpochTimes(classes), Memory(), 0.0

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        self._now = now
        return super().decide(now, jobs, held)

    def _shares(self, jobs: Sequence[SiaJob], speeds: Floats) -> Floats:
        """The smallest worst ratio of a job's finish time to that on an equal part."""
        there: Any = [TunedJob(job.asked.row, job.asked.gpus, job.asked.submit, max(self._times.left(job), 1e-6)) for job in jobs]
        found = finish_time_fairness(there, self._times.nodes.gpus, self._now, self._memory)
        return np.array([[found[job.index]] for job in there])


class ShockwaveScheduler(RoundScheduler):
    """Shockwave's plan of rounds in force, and the fair finish times so far."""

    def __init__(self, classes: Sequence[NodeClass], policy: Shockwave, length: float) -> None:
        self._times, self._policy, self._length = EpochTimes(classes), policy, length
        self._number, self._row = 0, 0
        self._members: list[str] = []
        self._plan: Bools = np.zeros((0, 0), dtype=np.bool_)
        self._targets: dict[str, list[tuple[int, float]]] = {}

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """The jobs of this round of the plan; a new plan where a job arrived or left, or it is time."""
        self._number = round(now / self._length)
        names = [job.asked.name for job in jobs]
        self._row += 1
        if names != self._members or self._row >= min(self._policy.beat, self._policy.window):
            self._replan(jobs, names != self._members)
            self._members, self._row = names, 0
        return [SiaGrant(0, job.asked.gpus) if runs else None for job, runs in zip(jobs, self._plan[:, self._row].tolist(), strict=True)]

    def _replan(self, jobs: Sequence[SiaJob], changed: bool) -> None:
        policy, gpus, length = self._policy, self._times.nodes.gpus, self._length
        share = min(1.0, gpus / len(jobs))
        remaining = np.array([max(self._times.left(job), 1.0) for job in jobs])
        if changed:
            for job, left in zip(jobs, remaining.tolist(), strict=True):
                spent = float(self._times.of(job).sum()) - left
                self._targets.setdefault(job.asked.name, []).append((self._number, job.asked.submit + (spent + left) / share))
        target = np.array([fair_target(self._targets[job.asked.name], self._number) for job in jobs])
        lateness = (length * self._number + remaining / share) / target
        window = PlanningWindow(
            np.array([job.asked.gpus for job in jobs], dtype=np.int64),
            np.array([float(len(job.edges)) for job in jobs]),
            np.array([float(job.epoch) for job in jobs]),
            np.array([float(self._times.of(job)[: job.epoch + 1].mean()) for job in jobs]),
            remaining,
            priorities(lateness, remaining, largest=policy.largest, power=policy.power, length=length),
            gpus,
            policy.window,
            length,
            policy.makespan,
        )
        fair = fair_window(window, target, share, policy.largest, length * (self._number + policy.window))
        self._plan = plan_with_cut(window if fair is None else fair)[0]


# A recorded table of decisions, and the scheduler that follows it.

_COLUMNS = ("t_s", "name", "gpu_type", "nodes", "gpus")


class RecordedScheduler(RoundScheduler):
    """Every job has the last entry of the table; a row takes effect in the first round that does not end before it."""

    def __init__(self, path: str, jobs: Sequence[SiaJob], classes: Sequence[NodeClass]) -> None:
        if not path:
            raise UsageError("no table is given", where="policy 'recorded'", fix="--set table=FILE.csv with " + ",".join(_COLUMNS))
        self._source, self._classes = path, classes
        self._rows = _read(Path(path), {job.asked.name: job for job in jobs}, classes)
        self._next = 0
        self._now: dict[str, SiaGrant | None] = {}

    def decide(self, now: float, jobs: Sequence[SiaJob], held: Sequence[SiaGrant | None]) -> list[SiaGrant | None]:
        """What each job has by now."""
        line = 0
        while self._next < len(self._rows) and self._rows[self._next][0] <= now:
            _, name, grant, line = self._rows[self._next]
            self._now[name] = grant
            self._next += 1
        wanted = [self._now.get(job.asked.name) for job in jobs]
        for group, one in enumerate(self._classes):
            used = sum(grant.gpus for grant in wanted if grant is not None and grant.group == group)
            if used > one.gpus:
                raise TraceError(
                    f"at {now:g} s jobs hold {used} GPUs of '{one.type}', but there are {one.gpus}", file=self._source, line=line or None
                )
        return wanted

    def next_change(self, now: float) -> float:
        """The next row of the table."""
        return self._rows[self._next][0] if self._next < len(self._rows) else math.inf


def _read(path: Path, jobs: dict[str, SiaJob], classes: Sequence[NodeClass]) -> list[tuple[float, str, SiaGrant | None, int]]:
    """(second, job, grant, line) in the order of time; rows of one second keep theirs."""
    reader = csv.reader(io.StringIO(read_text(path)))
    names = [name.strip() for name in next(reader, [])]
    for name in _COLUMNS:
        if name not in names:
            raise TraceError(f"has no column '{name}'", file=str(path), line=1, fix="it needs " + ",".join(_COLUMNS))
    found = []
    for line, cells in enumerate(reader, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        row = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        second, nodes, gpus = (_number(row, name, path, line) for name in ("t_s", "nodes", "gpus"))
        job = jobs.get(row.get("name", ""))
        if job is None:
            what = f"there is no job '{row.get('name', '')}' in the trace"
            raise TraceError(what, file=str(path), line=line, field="name", fix=near(row.get("name", ""), jobs))
        grant = None if gpus == 0 else _grant(row["gpu_type"], int(nodes), int(gpus), job, classes, path, line)
        found.append((second, job.asked.name, grant, line))
    return sorted(found, key=lambda each: each[0])


def _grant(kind: str, nodes: int, gpus: int, job: SiaJob, classes: Sequence[NodeClass], path: Path, line: int) -> SiaGrant:
    """The class of nodes with that many GPUs of the type on that many nodes."""
    if kind not in {one.type for one in classes}:
        known = {one.type for one in classes}
        raise TraceError(f"the cluster has no '{kind}'", file=str(path), line=line, field="gpu_type", fix=near(kind, known))
    if kind not in job.types:
        raise TraceError(f"'{job.asked.application}' has no profile on '{kind}'", file=str(path), line=line, field="gpu_type")
    if gpus % job.types[kind].unit:
        raise TraceError(
            f"{gpus} GPUs are no whole replicas of {job.types[kind].unit}", file=str(path), line=line, field="gpus", fix="whole replicas"
        )
    for group, one in enumerate(classes):
        if one.type == kind and -(-gpus // one.size) == nodes and gpus <= one.gpus:
            return SiaGrant(group, gpus)
    raise TraceError(f"{gpus} GPUs of '{kind}' do not lie on {nodes} nodes", file=str(path), line=line, field="nodes")


def _number(row: dict[str, str], name: str, path: Path, line: int) -> float:
    text = row.get(name, "") or "0"  # a pause may be empty
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0 and (name == "t_s" or value == int(value))):
        raise TraceError(f"'{text}' is no {'time' if name == 't_s' else 'count'}", file=str(path), line=line, field=name)
    return value
