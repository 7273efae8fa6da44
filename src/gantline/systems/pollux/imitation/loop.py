"""The outer loop of Pollux' simulator: advance every job by one interval, ask the policy, place the jobs whose nodes changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.reasons import Reason
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.imitations.intervals import DeviceCalendar, HeldInterval, write_intervals, write_jobs
from gantline.models.goodput.fit import fit, fit_like_artifact
from gantline.models.goodput.measured import Shape, packed_shape
from gantline.models.goodput.speed_model import LOG_STEP, Observations, step_time
from gantline.systems.pollux.imitation.jobs import RESTART, Nodes, PolluxJob, shape_of

_PATIENCE = 200  # intervals in which jobs are there and none progresses, after which a run is given up
_ELSEWHERE = (1, 2, 4, 8, 16)  # devices at which beliefs are compared with the truth


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
    """One run; jobs are numbers in the order of their file, which is that of their submission."""

    jobs: Sequence[PolluxJob]
    interval: float = 60.0
    interference: float = 0.0
    artifact_fit: bool = False
    on_interval: Callable[[float, int, int], None] | None = None
    held: dict[int, Nodes] = field(default_factory=dict)
    since: dict[int, float] = field(default_factory=dict)
    spans: list[PolluxSpan] = field(default_factory=list)
    unmeasured: set[tuple[str, Shape]] = field(default_factory=set)  # shapes that have to be interpolated
    now: float = 0.0
    decisions: int = 0
    stalled: bool = False  # given up, because no job progressed for long
    fitted: dict[bytes, Floats] = field(default_factory=dict)

    def run(self, policy: Decider) -> None:
        """Run until every job has finished, or none progresses any more."""
        jobs, arrived, idle = self.jobs, 0, 0
        for each in jobs:
            each.fit = self._fit
        active: list[int] = []
        slowed: set[int] = set()
        while arrived < len(jobs) or active:
            if not active and jobs[arrived].submit > self.now + self.interval:  # no job is there: go to the interval of the next
                intervals = math.ceil((jobs[arrived].submit - self.now) / self.interval) - 1  # on its end is in time
                self.now += self.interval * intervals
            before, self.now = sum(job.progress for job in jobs), self.now + self.interval
            for job in [job for job in active if self.held[job]]:
                jobs[job].slowed = 1.0 - self.interference if job in slowed else 1.0
                jobs[job].advance(self.now - self.interval, self.interval)
            idle = idle + 1 if active and sum(job.progress for job in jobs) == before else 0
            self.stalled = idle > _PATIENCE and arrived == len(jobs)
            if self.stalled:
                break
            for job in [job for job in active if jobs[job].done]:
                self._end(job, jobs[job].finish, finished=True)
                del self.held[job]
                active.remove(job)
            while arrived < len(jobs) and jobs[arrived].submit <= self.now:
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
            slowed = self._interfering(active) if self.interference > 0.0 else slowed
            if self.on_interval is not None:
                self.on_interval(self.now, arrived, len(active))
        for job in [job for job in active if self.held[job]]:
            self._end(job, self.now, finished=False)

    def _place(self, job: int, nodes: Nodes) -> None:
        if self.held[job]:
            self._end(job, self.now, finished=False)
        self.held[job], shape, application = nodes, shape_of(nodes), self.jobs[job].application
        self.jobs[job].shape = shape
        if nodes:
            self.jobs[job].start(shape, self.now, RESTART)
            self.since[job] = self.now
            if not application.times.is_measured(shape):
                self.unmeasured.add((application.name, shape))

    def _end(self, job: int, at: float, finished: bool) -> None:
        self.spans.append(PolluxSpan(job, self.since.pop(job), at, self.held[job], finished))

    def _fit(self, rows: Floats) -> Floats:
        """The model that fits these measurements; equal ones have equal models."""
        known = rows.tobytes()
        if known not in self.fitted:
            self.fitted[known] = (fit_like_artifact if self.artifact_fit else fit)(Observations(rows)).parameters
        return self.fitted[known]

    def _interfering(self, active: list[int]) -> set[int]:
        """Jobs on several nodes that share one with another such job are slowed down until the next decision."""
        spanning = {job: set(self.held[job]) for job in active if len(set(self.held[job])) > 1}
        sharing = Counter(node for nodes in spanning.values() for node in nodes)
        return {job for job, nodes in spanning.items() if any(sharing[node] > 1 for node in nodes)}


def write_result(simulation: Simulation, loop: Loop) -> None:
    """Fill in starts, ends, service, restarts and the intervals in which devices were held."""
    jobs = loop.jobs
    write_jobs(
        simulation, service=[job.seconds for job in jobs], first_start=[job.first_start for job in jobs],
        finish=[job.finish for job in jobs], restarts=[job.restarts for job in jobs], gpu_time=[job.gpu_seconds for job in jobs],
        done=[min(job.progress / job.edges[-1], 1.0) for job in jobs],
    )  # fmt: skip
    simulation.state.now = max((span.end for span in loop.spans), default=loop.now)
    simulation.engine.decisions = loop.decisions
    write_intervals(simulation, _intervals(simulation, loop))


def _intervals(simulation: Simulation, loop: Loop) -> Iterator[HeldInterval]:
    """One per span; a node's devices are given out from the lowest number that is free."""
    t = simulation.state.tables
    calendar, first = DeviceCalendar(t.D.shape[1]), t.cluster.first_device.tolist()
    for span in sorted(loop.spans, key=lambda span: (span.begin, span.job)):
        held = [calendar.take(1, span.begin, span.end, first[node], t.cluster.nodes[node].gpus)[0] for node in span.nodes]
        reason = Reason.FINISHED if span.finished else Reason.END if span.end >= loop.now else Reason.RESIZED
        yield HeldInterval(span.job, span.begin, span.end, held, reason)


def belief_errors(loop: Loop) -> dict[str, Any]:
    """Mean relative error of step times, as the last models see them: where a job has been, and on 1 to 16 devices, packed."""
    there, elsewhere = [], []
    for job in loop.jobs:
        if job.model is not None:
            for key, row in job.rows.items():
                there.append(abs(step_time(job.model, *key, 0) / float(np.exp(row[LOG_STEP])) - 1.0))
            (_, _, local), application = key, job.application
            for devices in _ELSEWHERE:
                shape = packed_shape(devices, application.per_node)
                believed = step_time(job.model, len(shape), devices, local, 0)
                elsewhere.append(abs(believed / application.step_time(shape, local, 0.0) - 1.0))
    means = (float(np.mean(errors)) if errors else None for errors in (there, elsewhere))
    return dict(zip(("belief_error_seen", "belief_error_elsewhere"), means))
