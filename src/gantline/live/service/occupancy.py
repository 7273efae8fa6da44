"""Which jobs held which devices when, and which waited: what windows of time are cut from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import UsageError
from gantline.lab.report.frames import RunLike, node_gpus_of, settled, span_of, unfinished
from gantline.live.scheduler.view import View
from gantline.live.service.live_board import RUNS

OTHERS = "-"  # instead of the names of jobs and users that the caller may not see


class JobName(NamedTuple):
    """What is shown of a job besides what it holds."""

    id: str
    name: str = ""
    user: str = ""
    queue: str = ""
    gpus: int = 0  # that it asks for


@dataclass(frozen=True)
class Occupancy:
    """Intervals as columns; `job` is a place in `jobs`. Times are seconds since 1970, or of a stored run since its beginning."""

    jobs: Sequence[JobName]
    nodes: Sequence[tuple[str, int]]  # names and devices, in the order of the devices' numbers
    begin: float
    end: float
    start: Floats  # of intervals on devices
    stop: Floats
    job: Ints
    first: Ints  # interval k holds devices[first[k] : first[k + 1]]
    devices: Ints
    wait_start: Floats
    wait_stop: Floats
    wait_job: Ints

    @property
    def device_count(self) -> int:
        return sum(count for _, count in self.nodes)

    def window(self, begin: float | None, end: float | None, usual: float) -> tuple[float, float]:
        """The requested window, by default the last `usual` seconds; refused if it is empty or reversed."""
        last = self.end if end is None else end
        since = max(self.begin, last - usual) if begin is None else begin
        if begin is None and end is None and since >= last:
            since = last - 1.0  # nothing has happened yet: a second of it
        if not since < last:
            problem = "is empty" if since == last else "ends before it begins"
            raise UsageError(f"the window from {since:.15g} to {last:.15g} {problem}", where="from", fix="give a 'from' before 'to'")
        return since, last


def columns(intervals: Sequence[tuple[float, float, int, Sequence[int]]]) -> tuple[Floats, Floats, Ints, Ints, Ints]:
    """Stays (start, stop, job, devices) as columns: start, stop, job, first, devices."""
    start, stop = (np.array([interval[place] for interval in intervals], dtype=np.float64) for place in (0, 1))
    job = np.array([interval[2] for interval in intervals], dtype=np.int64)
    first = np.concatenate(([0], np.cumsum([len(interval[3]) for interval in intervals]))).astype(np.int64)
    devices = np.array([device for interval in intervals for device in interval[3]], dtype=np.int64)
    return start, stop, job, first, devices


# The past of a service, built from its events: each is read once, however many windows are requested.
#
# A job holds its devices from the event that grants them to the next event that changes them.

_BLOCK = 10_000  # events that are read at a time
_MOST = 400_000  # intervals that are remembered; beyond that the oldest half is dropped


class EventStore(Protocol):
    """Where events are read from."""

    def events(self, *, after: int = 0, limit: int = _BLOCK) -> list[dict[str, Any]]: ...


class LivePast:
    """`view` gives the names of jobs and devices; `wall` is the time of day of an instant, `now` the present one."""

    def __init__(self, store: EventStore, view: Callable[[], View], wall: Callable[[float], float], now: Callable[[], float]) -> None:
        self._store, self._view, self._wall, self._now = store, view, wall, now
        self._lock = threading.Lock()
        self._read = 0  # the number of the last event
        self._places: dict[str, int] = {}  # jobs by id
        self._intervals: list[tuple[float, float, int, Sequence[str]]] = []
        self._waits: list[tuple[float, float, int]] = []
        self._open: dict[int, tuple[float, Sequence[str]]] = {}  # by job: since when it holds which devices
        self._waiting: dict[int, float] = {}  # by job: since when

    def occupancy(self) -> Occupancy:
        """All that is known, up to this moment."""
        with self._lock:
            self._fold()
            now, view = self._now(), self._view()
            for job in view.jobs.values():  # a job that has waited ever since it was submitted has no event yet
                if job.state == "pending" and (place := self._places.setdefault(job.id, len(self._places))) not in self._waiting:
                    self._waiting[place] = self._wall(job.submitted)
            device_of = {device.name: place for place, device in enumerate(view.devices)}
            intervals = [*self._intervals, *((since, now, job, held) for job, (since, held) in self._open.items())]
            waits = [*self._waits, *((since, now, job) for job, since in self._waiting.items())]
            numbered = [(a, b, job, [device_of[name] for name in held if name in device_of]) for a, b, job, held in intervals]
            jobs = [self._name(id, view) for id in self._places]
        nodes: dict[str, int] = {}
        for device in view.devices:
            nodes[device.node] = nodes.get(device.node, 0) + 1
        begin = min((*(interval[0] for interval in intervals[:1]), *(wait[0] for wait in waits[:1])), default=now)
        waited_from, waited_to, places = (np.array([wait[part] for wait in waits], dtype=np.float64) for part in range(3))
        return Occupancy(jobs, [*nodes.items()], begin, now, *columns(numbered), waited_from, waited_to, places.astype(np.int64))

    @staticmethod
    def _name(id: str, view: View) -> JobName:
        known = view.jobs.get(id)
        return JobName(id) if known is None else JobName(id, known.name, known.user, known.queue, known.gpus)

    def _fold(self) -> None:
        while rows := self._store.events(after=self._read, limit=_BLOCK):
            self._read = rows[-1]["number"]
            for row in rows:
                if row.get("event") == "state" and row.get("job"):
                    self._entered(row)
        if len(self._intervals) > _MOST:
            del self._intervals[: _MOST // 2]
        if len(self._waits) > _MOST:
            del self._waits[: _MOST // 2]

    def _entered(self, row: Mapping[str, Any]) -> None:
        id, at, state = str(row["job"]), self._wall(float(row["time"])), str(row["state"])
        if id not in self._places and state != "held" and (known := self._view().jobs.get(id)) is not None:
            self._waiting[len(self._places)] = self._wall(known.submitted)
        job = self._places.setdefault(id, len(self._places))
        held = tuple(row.get("devices", ())) if state in RUNS else ()
        before = self._open.get(job)
        if before is not None and before[1] != held:
            del self._open[job]
            self._intervals.append((before[0], at, job, before[1]))
        if held and job not in self._open:
            self._open[job] = (at, held)
        waits = state == "pending"
        if not waits and job in self._waiting:
            since = self._waiting.pop(job)
            self._waits += [(since, at, job)] if since < at else []
        elif waits:
            self._waiting.setdefault(job, at)


# The past of a stored run: its allocations, and the time between them in which jobs waited.


def occupancy_of(run: RunLike) -> Occupancy:
    """Times count from the beginning of the run's clock."""
    run = settled(run)
    begin, end = span_of(run)
    jobs = run.jobs
    names = [
        JobName(str(id), "", str(user), str(queue), int(gpus)) for id, user, queue, gpus in jobs["job", "user", "queue", "gpus"].rows()
    ]
    place_of = {one.id: place for place, one in enumerate(names)}
    held = run.allocations.filter(run.allocations["job"].is_in(jobs["job"].implode()))
    job = np.array([place_of[id] for id in held["job"].to_list()], dtype=np.int64)
    start, stop = held["start"].to_numpy(), held["end"].to_numpy()
    devices = held["devices"].explode().drop_nulls().to_numpy().astype(np.int64)
    first = np.concatenate(([0], np.cumsum(held["devices"].list.len().to_numpy()))).astype(np.int64)
    is_open: Ints = np.array([place_of[id] for id in unfinished(jobs)["job"].to_list()], dtype=np.int64)
    waits = _waits(jobs["arrival"].to_numpy(), is_open, job, start, stop, end)
    nodes = _nodes(run, int(devices.max()) + 1 if devices.size else 0)
    return Occupancy(names, nodes, begin, end, start, stop, job, first, devices, *waits)


def _nodes(run: RunLike, least: int) -> list[tuple[str, int]]:
    """Nodes as the run lists them; without a list, all devices that were held form one node."""
    sizes = [size for size in node_gpus_of(run) if size]
    given = run.summary.get("node_names")
    names = [str(name) for name in given] if given and len(given) == len(sizes) else [f"node{k}" for k in range(len(sizes))]
    return list(zip(names, sizes)) if sum(sizes) >= least else [("devices", least)]


def _waits(arrival: Floats, is_open: Ints, job: Ints, start: Floats, stop: Floats, end: float) -> tuple[Floats, Floats, Ints]:
    """Jobs that have arrived and hold nothing: before their first interval, between two, and, where they have not ended, to the end."""
    order = np.lexsort((start, job))
    owner, begins, ends = job[order], start[order], stop[order]
    is_first = np.append(True, owner[1:] != owner[:-1])[: owner.size]
    before = np.where(is_first, arrival[owner], np.append(0.0, ends[:-1])[: owner.size])
    last = arrival.copy()  # up to when a job is accounted for
    np.maximum.at(last, owner, ends)
    froms, tos, jobs = np.append(before, last[is_open]), np.append(begins, np.full(is_open.size, end)), np.append(owner, is_open)
    waits = froms < tos
    return froms[waits], tos[waits], jobs[waits]
