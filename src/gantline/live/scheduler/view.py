"""Where jobs stand in the queue, as the last decision left it: values that are read by any thread, without asking the one that decides."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Node
from gantline.core.phases import PENDING, Phase
from gantline.core.reasons import Reason, sentence, slug
from gantline.core.tables import Tables
from gantline.core.windows import AdvanceWindow
from gantline.engine.engine import Engine
from gantline.engine.gates.windows import devices_of
from gantline.engine.settings import Switch
from gantline.live.scheduler.job_registry import ENDS, HOLDS, MUST, STATES, Job

_UNSEEN = (int(Reason.NONE), int(Reason.ARRIVED))


@dataclass(frozen=True, slots=True, eq=False)
class QueueNow:
    """Which jobs wait, in which order, and what is free."""

    version: int = 0  # another number: something has changed that a forecast depends on
    waiting: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # rows in the order of the last decision
    ids: Sequence[str] = ()  # by row
    ranked: bool = False  # the last decision was an order; else they stand as they were submitted
    free: Mapping[str, int] = field(default_factory=dict)  # devices by type that are free for any job
    devices: Mapping[str, int] = field(default_factory=dict)  # that there are

    def ahead(self, row: int) -> list[str] | None:
        """Ids of the jobs that wait ahead of the one of that row, in order; None: it does not wait."""
        place = np.flatnonzero(self.waiting == row)
        return [self.ids[other] for other in self.waiting[: place[0]].tolist()] if len(place) else None


def standing_of(engine: Engine, version: int) -> QueueNow:
    """The queue now, as a value that other threads may keep."""
    state, t = engine.state, engine.state.tables
    free, all_ = {}, {}
    for number, kind in enumerate(t.cluster.types):
        here = t.nodes.type == number
        free[kind], all_[kind] = int(t.nodes.free[here].sum()), int(t.nodes.gpus[here].sum())
    return QueueNow(version, state.waiting_rows.copy(), t.ids, engine.ranks, free, all_)


def reason_of(engine: Engine, row: int) -> int:
    """Why a row waits. A policy's walk may end before it reaches a row; the reason of such a row is known all the same."""
    state, t = engine.state, engine.state.tables
    code = int(t.jobs.reason[row])
    if code not in _UNSEEN or int(t.jobs.phase[row]) != PENDING or not engine.decided_at >= float(t.jobs.since[row]):
        return code
    if not engine.ranks or math.isinf(t.jobs.key[row]):
        return int(Reason.DEFERRED)
    return int(Reason.PRIORITY if state.SI[Switch.PREEMPT] else Reason.RESOURCES)


# The scheduler's state for other threads: plain values, made anew after each step and never changed.


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
    """State, reason and a sentence, from the engine and the registry."""
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
    jobs = tables.jobs
    phase = Phase(int(jobs.phase[row]))
    ran = max(0.0, now - float(jobs.since[row])) if phase is Phase.RUNNING else 0.0
    grant = tables.granted.get(row)
    batch = grant.assignment.batch if grant is not None else 0
    return JobView(
        id=job.id, name=str(job.spec.get("name", "")), user=job.user, queue=tables.queues[int(jobs.queue[row])],
        state=job.state, reason=job.reason, why=job.why,
        gpus=int(jobs.gpus[row]), min_gpus=int(jobs.min_gpus[row]), max_gpus=int(jobs.max_gpus[row]),
        devices=where, priority=float(jobs.priority[row]), submitted=job.submitted,
        started=None if math.isnan(job.started) else job.started, finished=None if math.isnan(job.finished) else job.finished,
        exit_code=job.exit_code, epoch=int(jobs.epoch[row]), restarts=int(jobs.restarts[row]), failures=job.failures,
        service=float(jobs.service[row]) + ran, work=float(jobs.done[row]) + ran * float(jobs.rate[row]),
        estimate=float(jobs.estimate[row]) if job.is_estimated and math.isfinite(jobs.estimate[row]) else None,
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


# A mapping that never changes, made from the one before it at the price of what is new.

Key = TypeVar("Key")
Value = TypeVar("Value")


class Layers(Mapping[Key, Value], Generic[Key, Value]):
    """New entries over the earlier ones; both are read only. Keys stay in the order in which they were added."""

    __slots__ = ("_above", "_below", "_more")

    def __init__(self, below: dict[Key, Value], above: dict[Key, Value]) -> None:
        self._below, self._above = below, above
        self._more = [key for key in above if key not in below]

    def __getitem__(self, key: Key) -> Value:
        found = self._above.get(key)
        return self._below[key] if found is None else found

    def __contains__(self, key: object) -> bool:
        return key in self._above or key in self._below

    def __len__(self) -> int:
        return len(self._below) + len(self._more)

    def __iter__(self) -> Iterator[Key]:
        yield from self._below
        yield from self._more

    def values(self) -> ValuesView[Value]:
        """All values; quicker than one lookup after the other."""
        return {**self._below, **self._above}.values()

    def __reversed__(self) -> Iterator[Key]:
        yield from reversed(self._more)
        yield from reversed(self._below)


class Growing(Generic[Key, Value]):
    """The mapping that one thread writes to; `read_only` is its present state for others. Values are never None."""

    def __init__(self, values: Mapping[Key, Value]) -> None:
        self._below, self._above = dict(values), dict[Key, Value]()

    def __getitem__(self, key: Key) -> Value:
        found = self._above.get(key)
        return self._below[key] if found is None else found

    def __setitem__(self, key: Key, value: Value) -> None:
        self._above[key] = value

    def drop(self, keys: Iterable[Key]) -> None:
        """Remove these; a reader of an earlier mapping still has them."""
        gone = set(keys)
        self._below, self._above = {key: value for key, value in {**self._below, **self._above}.items() if key not in gone}, {}

    def read_only(self) -> Layers[Key, Value]:
        """The present state; new entries are merged into the earlier ones when that is cheap for their number."""
        if len(self._above) > 64 + len(self._below) // 64:
            self._below, self._above = {**self._below, **self._above}, {}
        return Layers(self._below, dict(self._above))


# Views of devices and nodes: an unchanged device keeps the same object, so that a reader finds quickly what has
# changed.

Facts: TypeAlias = tuple[bool, frozenset[int], tuple[str, ...]]  # whether it is up, rows on it, windows that it is kept for
_IDLE: frozenset[int] = frozenset()


class DeviceViews:
    """The devices as they were seen last."""

    def __init__(self) -> None:
        self._views: tuple[DeviceView, ...] = ()
        self._seen: list[Facts] = []
        self._cluster: object = None

    def look(self, t: Tables, occupants: Mapping[int, Collection[int]]) -> tuple[DeviceView, ...]:
        """As they are now; `occupants` are rows by device."""
        before, self._seen = self._seen, _facts(t, occupants)
        if t.cluster is not self._cluster or len(before) != len(self._seen):
            self._cluster = t.cluster
            self._views = tuple(_view(t, device, facts) for device, facts in enumerate(self._seen))
        elif before != self._seen:
            pairs = enumerate(zip(self._views, before, self._seen))
            self._views = tuple(old if was == now else _view(t, device, now) for device, (old, was, now) in pairs)
        return self._views


class NodeViews:
    """The nodes as they were seen last."""

    def __init__(self) -> None:
        self._views: dict[str, NodeView] = {}
        self._free: Floats = np.zeros((0, 0))
        self._cluster: object = None

    def look(self, t: Tables) -> Mapping[str, NodeView]:
        """As they are now, by name."""
        free = t.NF[[Node.CPUS, Node.MEMORY]]
        if t.cluster is not self._cluster or not np.array_equal(free, self._free):
            self._cluster, self._free = t.cluster, free
            self._views = {
                node.name: NodeView(node.cpus, max(node.cpus - cpus, 0.0), node.memory, max(node.memory - memory, 0.0))
                for node, cpus, memory in zip(t.cluster.nodes, *free.tolist())
            }
        return self._views


def _facts(t: Tables, occupants: Mapping[int, Collection[int]]) -> list[Facts]:
    count = t.D.shape[1]
    up = (t.nodes.up[t.devices.node] == 1) & ((t.devices.closed == 0) | np.isin(np.arange(count), list(t.kept_free)))
    found: list[Facts] = [(is_up, _IDLE, ()) for is_up in up.tolist()]
    for device, rows in occupants.items():
        found[device] = (found[device][0], frozenset(rows), ())
    for window in t.windows.values():
        for device in devices_of(t.cluster, window.places):
            is_up, on_it, windows = found[device]
            found[device] = (is_up, on_it, (*windows, window.name))
    return found


def _view(t: Tables, device: int, facts: Facts) -> DeviceView:
    number = int(t.devices.node[device])
    node, (is_up, rows, windows) = t.cluster.nodes[number], facts
    name = f"{node.name}:{device - int(t.cluster.first_device[number])}"
    return DeviceView(name, node.type, node.name, is_up, tuple(sorted(t.ids[row] for row in rows)), windows)
