"""The original's outer loop: advance every job by one interval, ask the policy, place the jobs whose nodes changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from gantline.core.arrays import Ints
from gantline.models.goodput.fit import WORK, fit_like_artifact, fit_rows
from gantline.models.goodput.observations import Observations
from gantline.systems.pollux.imitation.applications import Applications
from gantline.systems.pollux.imitation.clock import RESTART, Column, PolluxJobs, advance, place_of_time, set_batch
from gantline.systems.pollux.imitation.placing import Nodes, shape_of

_PATIENCE = 200  # intervals in which jobs are there and none progresses, after which a run is given up


class Decider(Protocol):
    """A policy: which job gets which nodes."""

    def decide(self, now: float, active: Sequence[int], held: Mapping[int, Nodes]) -> dict[int, Nodes]: ...


@dataclass
class PolluxSpan:
    """A time in which a job held nodes."""

    job: int
    begin: float
    end: float
    nodes: Nodes
    finished: bool = False


@dataclass
class Loop:
    """One run."""

    jobs: PolluxJobs
    applications: Applications
    interval: float = 60.0
    interference: float = 0.0
    artifact_fit: bool = False
    on_interval: Callable[[float, int, int], None] | None = None
    held: dict[int, Nodes] = field(default_factory=dict)
    since: dict[int, float] = field(default_factory=dict)
    spans: list[PolluxSpan] = field(default_factory=list)
    first: dict[int, float] = field(default_factory=dict)  # when each job first got devices
    now: float = 0.0
    decisions: int = 0
    fits: int = 0
    stalled: bool = False  # given up, because no job progressed for long
    _fitted: dict[bytes, tuple[float, ...]] = field(default_factory=dict)

    def run(self, policy: Decider) -> None:
        """Run until every job has finished, or none progresses any more."""
        F = self.jobs.F
        submit, count = F[Column.SUBMIT], F.shape[1]
        arrived = idle = 0
        active: list[int] = []
        while arrived < count or active:
            if not active and submit[arrived] > self.now + self.interval:  # no job is there: go to the interval of the next
                self.now += self.interval * (math.ceil((submit[arrived] - self.now) / self.interval) - 1)  # on its end is in time
            before = float(F[Column.PROGRESS].sum())
            self._advance([job for job in active if self.held[job]])
            self.now += self.interval
            idle = idle + 1 if active and F[Column.PROGRESS].sum() == before else 0
            self.stalled = idle > _PATIENCE and arrived == count
            if self.stalled:
                break
            finish = self.jobs.F[Column.FINISH]
            for job in [job for job in active if finish[job] == finish[job]]:
                self._end(job, float(finish[job]), finished=True)
                del self.held[job]
            active = [job for job in active if finish[job] != finish[job]]
            while arrived < count and submit[arrived] <= self.now:
                active.append(arrived)
                self.held[arrived] = ()
                arrived += 1
            if not active:
                continue
            wanted = policy.decide(self.now, active, self.held)
            self.decisions += 1
            for job in active:
                nodes = wanted.get(job, ())
                if nodes != self.held[job]:
                    self._place(job, nodes)
            if self.interference > 0.0:
                self._find_interference(active)
            if self.on_interval is not None:
                self.on_interval(self.now, arrived, len(active))
        for job in [job for job in active if self.held[job]]:
            self._end(job, self.now, finished=False)

    def _place(self, job: int, nodes: Nodes) -> None:
        F, I = self.jobs.F, self.jobs.I
        if self.held[job]:
            self._end(job, self.now, finished=False)
        self.held[job] = nodes
        I[Column.DEVICES, job] = len(nodes)
        if not nodes:
            return
        self.since[job] = self.now
        self.first.setdefault(job, self.now)
        shape = shape_of(nodes)
        I[Column.SPAN, job] = len(shape)
        I[Column.TIMES, job] = self.applications.row(int(I[Column.APP, job]), shape)
        set_batch(self.jobs, self.applications.courses, job)
        F[Column.DELAY, job] = RESTART
        I[Column.RESTARTS, job] += 1  # from -1: the first start is none

    def _end(self, job: int, at: float, finished: bool) -> None:
        self.spans.append(PolluxSpan(job, self.since.pop(job), at, self.held[job], finished))

    def _advance(self, running: list[int]) -> None:
        if not running:
            return
        rows = np.array(running, dtype=np.int64)
        self.jobs.F[Column.LEFT, rows] = self.interval
        end, place = self.now + self.interval, 0
        while True:
            place = advance(self.jobs, self.applications.courses, self.applications.times, rows, place, end, self.interference)
            if place < 0:
                return
            job = int(rows[place])
            at = place_of_time(self.jobs, self.applications.courses, job)
            if self.applications.lacks(at):
                self.applications.fill(int(self.jobs.I[Column.APP, job]), shape_of(self.held[job]), at)
            else:
                self._fit(job)

    def _fit(self, job: int) -> None:
        """Fit the job's model to all its measurements; equal rows have equal models."""
        count = int(self.jobs.I[Column.SEEN, job])
        rows = self.jobs.seen[job, :count]
        known = rows.tobytes()
        if known not in self._fitted:
            self.fits += 1
            if self.artifact_fit:
                model = fit_like_artifact(Observations(rows)).parameters
            else:
                model = np.zeros(7)
                fit_rows(rows, model, np.zeros(WORK), False)
            self._fitted[known] = tuple(model.tolist())
        self.jobs.model[job] = self._fitted[known]
        self.jobs.I[Column.MODEL, job] = 1
        if count == self.jobs.seen.shape[1]:
            self.jobs = self.jobs._replace(seen=np.concatenate((self.jobs.seen, np.zeros_like(self.jobs.seen)), axis=1))

    def _find_interference(self, active: list[int]) -> None:
        """Jobs on several nodes that share one with another such job are slowed down until the next decision."""
        spanning = [job for job in active if len(set(self.held[job])) > 1]
        guests: dict[int, int] = {}
        for job in spanning:
            for node in set(self.held[job]):
                guests[node] = guests.get(node, 0) + 1
        slowed: Ints = np.array([job for job in spanning if any(guests[node] > 1 for node in self.held[job])], dtype=np.int64)
        self.jobs.F[Column.SLOWED] = 0.0
        self.jobs.F[Column.SLOWED, slowed] = 1.0
