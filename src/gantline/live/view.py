"""The scheduler's state for other threads: plain values, made anew after each step and never changed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gantline.core.columns import Job as JobColumn
from gantline.core.phases import Phase
from gantline.core.reasons import Reason, sentence, slug
from gantline.core.tables import Tables
from gantline.core.windows import AdvanceWindow
from gantline.live.book import ENDS, HOLDS, MUST, STATES, Job
from gantline.live.queue_now import QueueNow


@dataclass(frozen=True, slots=True)
class JobView:
    """One job, as of the view's time. Times are seconds since the home was made."""

    id: str
    name: str
    user: str
    queue: str
    state: str
    reason: str
    why: str
    gpus: int
    min_gpus: int
    max_gpus: int
    devices: tuple[str, ...]
    priority: float
    submitted: float
    started: float | None
    finished: float | None
    exit_code: int | None
    epoch: int
    restarts: int
    failures: int
    service: float  # seconds it has run
    work: float  # what it has done, in seconds at speed one
    estimate: float | None  # how much that seems to be in all
    array: str
    held: tuple[str, ...]
    lines: tuple[str, ...]
    progress: Mapping[str, Any]
    stop: bool = False  # it must give its devices up
    batch: int | None = None
    row: int = -1
    resizes: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    after: tuple[tuple[str, str], ...] = ()  # jobs that it depends on, and what must become of them
    is_archived: bool = False  # it has left the store

    def of_task(self, id: str, row: int) -> JobView:
        """The same of another task of its array; thousands are entered at once, and this takes a tenth of making one."""
        found = object.__new__(JobView)
        for name in JobView.__slots__:
            object.__setattr__(found, name, getattr(self, name))
        object.__setattr__(found, "id", id)
        object.__setattr__(found, "row", row)
        return found

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {name: _plain(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class DeviceView:
    """One device, and the jobs on it."""

    name: str
    type: str
    node: str
    up: bool
    jobs: tuple[str, ...]
    windows: tuple[str, ...] = ()  # names of those for which it is kept free


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node has beside its devices, and how much of that jobs have asked for; zero: nothing is known of it."""

    cpus: float
    cpus_taken: float
    memory: float  # GB
    memory_taken: float


@dataclass(frozen=True, slots=True)
class View:
    """One instant."""

    now: float
    policy: str
    settings: Mapping[str, Any]
    jobs: Mapping[str, JobView] = field(default_factory=dict)
    devices: tuple[DeviceView, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)
    incidents: tuple[str, ...] = ()  # the newest last
    standing: QueueNow = field(default_factory=QueueNow)
    windows: tuple[AdvanceWindow, ...] = ()
    in_charge: str = ""  # which policy decides and why, where one chooses among several
    nodes: Mapping[str, NodeView] = field(default_factory=dict)  # by name


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value


def state_of(job: Job, phase: Phase, code: int) -> tuple[str, str, str]:
    """State, reason and a sentence, from the engine and the book."""
    if phase is Phase.FAILED:
        return (
            ("timeout" if job.ending == "time-limit" else "failed"),
            job.ending or slug(code),
            job.why or ENDS.get(job.ending, sentence(code)),
        )
    if phase is Phase.HELD and job.holds:
        cause = next(one for one in HOLDS if one in job.holds)
        return "held", cause, _waits_for(job) if cause == "dependency" else HOLDS[cause]
    if phase in (Phase.RUNNING, Phase.STARTING, Phase.RESIZING):
        return STATES[phase], "", ""
    if phase is Phase.COMPLETED:
        return "succeeded", *((slug(code), sentence(code)) if code == Reason.LOSS else ("", ""))
    reason = Reason.ARRIVED if phase is Phase.FUTURE else code
    return STATES[phase], slug(reason), sentence(reason)


def _waits_for(job: Job) -> str:
    return "waits for " + ", ".join(f"job {other} to {MUST[when]}" for other, when in job.launch.after[:5])


def job_view(job: Job, tables: Tables, row: int, now: float, where: tuple[str, ...]) -> JobView:
    """The job as its row stands."""
    F, I = tables.F, tables.I
    phase = Phase(int(I[JobColumn.PHASE, row]))
    ran = max(0.0, now - float(F[JobColumn.SINCE, row])) if phase is Phase.RUNNING else 0.0
    grant = tables.granted.get(row)
    batch = grant.assignment.batch if grant is not None else 0
    return JobView(
        id=job.id, name=str(job.spec.get("name", "")), user=job.user, queue=tables.queues[int(I[JobColumn.QUEUE, row])],
        state=job.state, reason=job.reason, why=job.why,
        gpus=int(I[JobColumn.GPUS, row]), min_gpus=int(I[JobColumn.MIN_GPUS, row]), max_gpus=int(I[JobColumn.MAX_GPUS, row]),
        devices=where, priority=float(F[JobColumn.PRIORITY, row]), submitted=job.submitted,
        started=None if math.isnan(job.started) else job.started, finished=None if math.isnan(job.finished) else job.finished,
        exit_code=job.exit_code, epoch=int(I[JobColumn.EPOCH, row]), restarts=int(I[JobColumn.RESTARTS, row]), failures=job.failures,
        service=float(F[JobColumn.SERVICE, row]) + ran, work=float(F[JobColumn.DONE, row]) + ran * float(F[JobColumn.RATE, row]),
        estimate=float(F[JobColumn.ESTIMATE, row]) if job.is_estimated and math.isfinite(F[JobColumn.ESTIMATE, row]) else None,
        array=job.launch.array, held=tuple(sorted(job.holds)), lines=job.lines, progress=MappingProxyType(dict(job.progress)),
        stop=phase.terminal or phase in (Phase.CHECKPOINTING, Phase.STOPPING, Phase.HELD),
        batch=int(batch) if batch else None, row=row, resizes=job.resizes, labels=job.spec.get("labels", {}),
        metrics=job.spec.get("metrics", {}), after=job.launch.after,
    )  # fmt: skip


def waiting_view(job: Job) -> JobView:
    """A job that was just submitted, whose row comes with the next step."""
    return old_view(job, "held" if job.holds else "pending", job.reason or "arrived", stop=False)


def old_view(job: Job, state: str = "", reason: str = "", stop: bool = True, is_archived: bool = False) -> JobView:
    """A job of which no row is left, or none is there yet."""
    spec = job.spec
    return JobView(
        id=job.id, name=str(spec.get("name", "")), user=job.user, queue=str(spec.get("queue", "")),
        state=state or job.state, reason=reason or job.reason, why=job.why, gpus=int(job.asked.get("gpus", 0)),
        min_gpus=int(job.asked.get("min_gpus", 0)), max_gpus=int(job.asked.get("max_gpus", 0)), devices=(),
        priority=float(job.asked.get("priority", 0.0)), submitted=job.submitted,
        started=None if math.isnan(job.started) else job.started, finished=None if math.isnan(job.finished) else job.finished,
        exit_code=job.exit_code, epoch=job.ended_epoch, restarts=0, failures=job.failures,
        service=job.served, work=job.served, estimate=None, array=job.launch.array,
        held=tuple(sorted(job.holds)), lines=job.lines, progress=MappingProxyType(dict(job.progress)), stop=stop,
        resizes=job.resizes, labels=spec.get("labels", {}), metrics=spec.get("metrics", {}), after=job.launch.after,
        is_archived=is_archived,
    )  # fmt: skip
