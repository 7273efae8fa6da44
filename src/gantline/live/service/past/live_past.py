"""The past of a service, built from its events: each is read once, however many windows are requested.

A job holds its devices from the event that grants them to the next event that changes them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from gantline.live.service.board.rows import RUNS
from gantline.live.service.past.occupancy import JobName, Occupancy, columns
from gantline.live.view import View

_BLOCK = 10_000  # events that are read at a time
_MOST = 400_000  # stays that are remembered; beyond that the oldest half is dropped


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
        self._stays: list[tuple[float, float, int, Sequence[str]]] = []
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
            stays = [*self._stays, *((since, now, job, held) for job, (since, held) in self._open.items())]
            waits = [*self._waits, *((since, now, job) for job, since in self._waiting.items())]
            numbered = [(a, b, job, [device_of[name] for name in held if name in device_of]) for a, b, job, held in stays]
            jobs = [self._name(id, view) for id in self._places]
        nodes: dict[str, int] = {}
        for device in view.devices:
            nodes[device.node] = nodes.get(device.node, 0) + 1
        begin = min((*(stay[0] for stay in stays[:1]), *(wait[0] for wait in waits[:1])), default=now)
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
        if len(self._stays) > _MOST:
            del self._stays[: _MOST // 2]
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
            self._stays.append((before[0], at, job, before[1]))
        if held and job not in self._open:
            self._open[job] = (at, held)
        waits = state == "pending"
        if not waits and job in self._waiting:
            since = self._waiting.pop(job)
            self._waits += [(since, at, job)] if since < at else []
        elif waits:
            self._waiting.setdefault(job, at)
