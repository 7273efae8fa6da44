"""A job as one row of the board, and the part of it that other users may see."""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.live.scheduler.view import DeviceView, JobView, View

Row: TypeAlias = tuple[Any, ...]
Wall: TypeAlias = Callable[[float | None], float | None]

#: the columns of a row, in order
COLUMNS: Final = (
    "key", "id", "name", "user", "queue", "state", "reason", "why", "gpus", "min_gpus", "max_gpus", "held", "priority",
    "submitted", "started", "ended", "restarts", "resizes", "failures", "exit_code", "array", "epoch", "estimate",
    "done", "total", "throughput", "loss",
)  # fmt: skip
KEY, USER, STATE, SUBMITTED, ENDED = (COLUMNS.index(name) for name in ("key", "user", "state", "submitted", "ended"))
RUNS: Final = frozenset({"starting", "running", "resizing", "preempting"})
_PUBLIC: Final = frozenset({"key", "state", "gpus", "min_gpus", "max_gpus", "held"})
_OTHERS: Final = {**dict.fromkeys(("id", "name", "user", "queue", "array"), "-"), "reason": "", "why": ""}
_HIDDEN: Final = tuple((name in _PUBLIC, _OTHERS.get(name)) for name in COLUMNS)

#: what a row is made of: a view that differs in nothing of this, as one that only ran for another second, gives the same row
shown_of = attrgetter(
    "id", "name", "user", "queue", "state", "reason", "why", "gpus", "min_gpus", "max_gpus", "devices", "priority",
    "submitted", "started", "finished", "restarts", "resizes", "failures", "exit_code", "array", "epoch", "estimate", "progress",
)  # fmt: skip


def row_of(job: JobView, key: int, wall: Wall) -> Row:
    """The row of a job; times are seconds since 1970."""
    value = job.progress.get
    return (
        key, job.id, job.name, job.user, job.queue, job.state, job.reason, job.why, job.gpus, job.min_gpus, job.max_gpus,
        len(job.devices), job.priority, wall(job.submitted), wall(job.started), wall(job.finished), job.restarts, job.resizes,
        job.failures, job.exit_code, job.array, job.epoch, job.estimate, value("done"), value("total"), value("throughput"), value("loss"),
    )  # fmt: skip


def hidden(row: Row) -> Row:
    """The row of a job of another user: that it is there, how large it is and what it holds, and nothing else."""
    return tuple(value if public else blank for value, (public, blank) in zip(row, _HIDDEN))


# The differences between a version of the board and the previous one.

Device: TypeAlias = tuple[int, str, list[int]]  # its place, its state as a letter, the keys of the jobs on it
_FEW = 1000  # places of the queue that are sent one by one; if more have changed, the whole queue is sent


@dataclass(frozen=True)
class BoardChange:
    """The step to version `number`."""

    number: int
    now: float
    head: dict[str, Any]
    jobs: list[Row] = field(default_factory=list)  # whole rows that are new or different
    gone: list[int] = field(default_factory=list)  # keys
    queue: dict[str, Any] | None = None
    devices: list[Device] = field(default_factory=list)


def queue_change(before: Ints, after: Ints) -> dict[str, Any] | None:
    """How one order of keys becomes another: those that leave and those that enter at a place, or the whole where others moved."""
    if np.array_equal(before, after):
        return None
    leave, enter = ~np.isin(before, after), ~np.isin(after, before)
    drop, places = before[leave].tolist(), np.flatnonzero(enter).tolist()
    if len(drop) + len(places) > _FEW or not np.array_equal(before[~leave], after[~enter]):
        return {"all": after.tolist()}
    return {"drop": drop, "add": [[place, key] for place, key in zip(places, after[enter].tolist())]}


# The live board: the scheduler's view as rows with keys, one version after another.
#
# One board serves all clients. `look` compares the newest view with the previous one, once for all of them, in time
# proportional to what changed: views of jobs are values that stay the same objects until their job changes.

PAUSE = 0.5  # seconds between two comparisons: at most two versions a second
ENDED_SHOWN = 500  # jobs that have ended and are still on the board, the newest
_REMEMBERED = 240  # versions from which a client can continue
_LETTERS = {"up": "u", "cordoned": "c", "reserved": "r"}


class LiveBoard:
    """`view` is the scheduler's newest view, `wall` the time of day of an instant, `clock` the present one.

    `deciding`: whether the scheduler is deciding.
    """

    def __init__(
        self, view: Callable[[], View], wall: Wall, clock: Callable[[], float] = time.time, deciding: Callable[[], bool] = lambda: True
    ) -> None:
        self._view, self._wall, self.clock, self._deciding = view, wall, clock, deciding
        self._boot = secrets.token_hex(4)  # marks versions of this process: those of an earlier one are refused
        self.lock = threading.RLock()
        self.number = 0
        self.layout = 0  # counts how often there were other nodes
        self.now = 0.0
        self.rows: dict[int, Row] = {}  # by key, in order of submission
        self.queue: Ints = np.zeros(0, dtype=np.int64)  # keys
        self.nodes: list[tuple[str, str, int, int]] = []  # name, type, first device, devices
        self.devices: list[Device] = []
        self.head: dict[str, Any] = {}
        self._changes: deque[BoardChange] = deque(maxlen=_REMEMBERED)
        self._oldest_known = 0  # the version behind which all changes are remembered
        self._looked = -PAUSE
        self._seen: View | None = None
        self._jobs: dict[str, Any] = {}  # by id: what was shown of it last
        self._keys: dict[str, int] = {}
        self._next_key = 1
        self._over: deque[str] = deque()  # ids of jobs on the board that have ended, oldest first
        self._left: set[str] = set()  # ids of jobs that have ended and are no longer on the board
        self._states: Counter[str] = Counter()
        self._places: tuple[DeviceView, ...] = ()
        self._waiting: Ints = np.zeros(0, dtype=np.int64)  # rows
        self._key_of: Ints = np.zeros(0, dtype=np.int64)  # by row of the engine; 0: none
        self._since: Floats = np.zeros(0)  # by row: when it was submitted
        self._order: list[JobView] = []  # all views that were seen last
        self._busy = self._cordoned = 0
        self._oldest: float | None = None

    @property
    def version(self) -> str:
        return f"{self._boot}.{self.number}"

    def version_of(self, number: int) -> str:
        return f"{self._boot}.{number}"

    def number_of(self, version: str) -> int | None:
        """The number of a version of this board from which a client can continue; None: it is another board's, or too old."""
        boot, _, number = version.partition(".")
        known = boot == self._boot and number.isdecimal() and len(number) < 16 and self._oldest_known <= int(number) <= self.number
        return int(number) if known else None

    def since(self, number: int) -> list[BoardChange]:
        """The changes behind a version, in order."""
        with self.lock:
            return [change for change in self._changes if change.number > number]

    def look(self) -> int:
        """Compare with the newest view, unless that was done a moment ago; the number of the newest version."""
        with self.lock:
            view = self._view()
            if view is self._seen or time.monotonic() - self._looked < PAUSE:
                return self.number
            self._looked = time.monotonic()
            first, self._seen = self._seen is None, view
            self.now = self._wall(view.now) or 0.0
            jobs, gone = self._look_at_jobs(view)
            devices = self._look_at_devices(view)
            queue = self._look_at_queue(view)
            head = self._head_of(view)
            if not first and not (jobs or gone or devices or queue) and head == self.head:
                return self.number
            self.head = head
            self.number += 1
            self._remember(BoardChange(self.number, self.now, head, jobs, gone, queue, devices or []), whole=first or devices is None)
            return self.number

    def _remember(self, change: BoardChange, whole: bool) -> None:
        """`whole`: no client can continue from an earlier version, because the nodes are different ones."""
        if whole:
            self._changes.clear()
            self.layout += 1
            self._oldest_known = change.number
            return
        if len(self._changes) == _REMEMBERED:
            self._oldest_known = self._changes[0].number
        self._changes.append(change)

    # --- jobs -------------------------------------------------------------------------------------------------------------
    def _look_at_jobs(self, view: View) -> tuple[list[Row], list[int]]:
        before, self._order = self._order, list(view.jobs.values())
        known, changed = self._jobs, []
        others = [new for old, new in zip(before, self._order) if old is not new]  # all, where some have left; else what is new
        for job in (*others, *self._order[len(before) :]):
            if job.finished is not None and job.id in self._left:
                continue
            shown = shown_of(job)
            if known.get(job.id) != shown:
                changed.append(job)
                known[job.id] = shown
        over = sorted((job for job in changed if job.finished is not None and not self._is_over(job.id)), key=_end_of)
        for job in over[:-ENDED_SHOWN]:  # more than the board has room for: these never enter
            self._left.add(job.id)
            if job.id not in self._keys:
                del known[job.id]
        rows = [self._enter(job) for job in changed if job.id in known]
        self._over += [job.id for job in over]
        gone = self._leave(view.jobs, len(self._order))
        return [row for row in rows if row[KEY] in self.rows], gone

    def _is_over(self, id: str) -> bool:
        """Whether the board shows it as a job that has ended."""
        row = self.rows.get(self._keys.get(id, 0))
        return row is not None and row[ENDED] is not None

    def _enter(self, job: JobView) -> Row:
        key = self._keys.get(job.id)
        if key is None:
            key = self._keys[job.id] = self._next_key
            self._next_key += 1
        if job.finished is None and self._is_over(job.id):  # it comes back
            self._over.remove(job.id)
        before, row = self.rows.get(key), row_of(job, key, self._wall)
        self._states[row[STATE]] += 1
        if before is not None:
            self._states[before[STATE]] -= 1
        self.rows[key] = row
        self._place(job.row, key, row[SUBMITTED])
        self._left.discard(job.id)
        return row

    def _place(self, row: int, key: int, submitted: float) -> None:
        """Remember which job is at a row of the engine."""
        if row >= len(self._key_of):
            self._key_of = np.concatenate([self._key_of, np.zeros(row + 1, dtype=np.int64)])
            self._since = np.concatenate([self._since, np.zeros(row + 1)])
        if row >= 0:
            self._key_of[row], self._since[row] = key, submitted

    def _leave(self, jobs: Mapping[str, JobView], count: int) -> list[int]:
        """Drop jobs that went to the archive, and the oldest of those that ended beyond `ENDED_SHOWN`; their keys."""
        left = [self._over.popleft() for _ in range(len(self._over) - ENDED_SHOWN)]
        self._left.update(left)
        for id in left:
            self._jobs.pop(id, None)
        if count < len(self._jobs) + len(self._left):  # some have gone to the archive
            archived = [id for id in self._jobs if id not in jobs]
            for id in archived:
                del self._jobs[id]
            self._left.intersection_update(jobs)
            self._over = deque(id for id in self._over if id in self._jobs)
            left += archived
        keys = [key for id in left if (key := self._keys.pop(id, None)) is not None]
        self._key_of[np.isin(self._key_of, keys)] = 0
        for key in keys:
            self._states[self.rows.pop(key)[STATE]] -= 1
        return keys

    # --- devices and the queue --------------------------------------------------------------------------------------------
    def _look_at_devices(self, view: View) -> list[Device] | None:
        """Devices that have changed; None: the set of devices is a different one."""
        before, self._places = self._places, view.devices
        if before is view.devices:
            return []
        places = [place for place, (old, new) in enumerate(zip(before, view.devices)) if old is not new]
        if len(before) != len(view.devices) or any(_called(before[place]) != _called(view.devices[place]) for place in places):
            self.nodes, self.devices = _nodes_of(view.devices), []
            self._busy = self._cordoned = 0
            for place, one in enumerate(view.devices):
                self.devices.append(self._device(place, one))
                self._count(self.devices[place], 1)
            return None
        changed = [found for place in places if (found := self._device(place, view.devices[place])) != self.devices[place]]
        for found in changed:
            self._count(self.devices[found[0]], -1)
            self._count(found, 1)
            self.devices[found[0]] = found
        return changed

    def _count(self, device: Device, sign: int) -> None:
        self._busy += sign * bool(device[2])
        self._cordoned += sign * (device[1] == "c")

    def _device(self, place: int, one: DeviceView) -> Device:
        state = "cordoned" if not one.up else "reserved" if one.windows else "up"
        return place, _LETTERS[state], [key for id in one.jobs if (key := self._keys.get(id)) is not None]

    def _look_at_queue(self, view: View) -> dict[str, Any] | None:
        standing = view.standing
        if np.array_equal(standing.waiting, self._waiting):
            return None
        self._waiting = standing.waiting
        known = standing.waiting[standing.waiting < len(self._key_of)]
        before, keys = self.queue, self._key_of[known]
        self.queue = keys[keys > 0]
        self._oldest = float(self._since[known][keys > 0].min()) if len(self.queue) else None
        return queue_change(before, self.queue)

    def _head_of(self, view: View) -> dict[str, Any]:
        """One line of numbers about all jobs and devices, the same for every role."""
        return {
            "policy": view.policy, "settings": dict(view.settings), "in_charge": view.in_charge, "deciding": self._deciding(),
            "devices": len(self.devices), "busy": self._busy, "cordoned": self._cordoned,
            "running": sum(self._states[state] for state in RUNS), "waiting": self._states["pending"], "held": self._states["held"],
            "oldest": self._oldest, "stuck": int(view.counters.get("stuck", 0)),
        }  # fmt: skip


def _called(device: DeviceView) -> tuple[str, str]:
    return device.name, device.type


def _end_of(job: JobView) -> float:
    return 0.0 if job.finished is None else job.finished


def _nodes_of(devices: Sequence[DeviceView]) -> list[tuple[str, str, int, int]]:
    found: list[tuple[str, str, int, int]] = []
    for place, device in enumerate(devices):
        if found and found[-1][0] == device.node:
            name, kind, first, count = found[-1]
            found[-1] = (name, kind, first, count + 1)
        else:
            found.append((device.node, device.type, place, 1))
    return found
