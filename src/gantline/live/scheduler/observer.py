"""After each step: finds what has changed, writes it to the store, and makes the view that other threads read."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job as JobColumn
from gantline.core.phases import Phase
from gantline.core.reasons import Reason
from gantline.core.windows import AdvanceWindow
from gantline.engine.executor import Order, Verb
from gantline.engine.policy_failures import Incident
from gantline.live.scheduler.endings import Endings
from gantline.live.scheduler.job_registry import ENDED, Job, JobRegistry
from gantline.live.scheduler.loop_thread import WallClock
from gantline.live.scheduler.setup import Setup
from gantline.live.scheduler.store_writer import StoreWriter
from gantline.live.scheduler.view import (
    DeviceViews,
    Growing,
    JobView,
    NodeViews,
    View,
    job_view,
    old_view,
    reason_of,
    standing_of,
    state_of,
    waiting_view,
)
from gantline.live.store.records import Entry
from gantline.live.wall_time import Live

_WATCHED = np.array([JobColumn.PHASE, JobColumn.REASON, JobColumn.EPOCH, JobColumn.GPUS, JobColumn.HELD])
_INCIDENTS = 20
_TERMINAL = [int(phase) for phase in Phase if phase.terminal]
_WAITS = (int(Phase.PENDING), int(Phase.HELD))
_QUOTA = (int(Reason.QUOTA), int(Reason.OVER_QUOTA))
_ON_DEVICES = ("starting", "running", "resizing")
_HOLDERS_OF = 100  # jobs that wait because of a quota and are kept up to date about which jobs hold it


class Observer:
    """Compares the tables with what was last seen."""

    def __init__(
        self, loop: Live, registry: JobRegistry, endings: Endings, clock: WallClock, writer: StoreWriter, windows: WindowEvents
    ) -> None:
        self.loop, self.registry, self.endings, self.clock, self.writer = loop, registry, endings, clock, writer
        endings.touched = self.touch
        self._open: Ints = np.empty(0, dtype=np.int64)  # rows that had not ended when we last looked, and how they were then
        self._seen: Ints = np.empty((len(_WATCHED), 0), dtype=np.int64)
        self._rows = 0  # how many rows there were
        self._views = Growing[str, JobView]({job.id: old_view(job) for job in registry})
        self._devices, self._nodes = DeviceViews(), NodeViews()
        self._sizes: dict[int, int] = {}  # by row: how many devices it last ran on
        self._unseen: set[int] = set()  # rows that the view still shows as waiting for a first decision
        self._new: set[str] = set()  # jobs that were just submitted, and have no row yet
        self.version = 0  # of what forecasts depend on
        self._holding: set[int] = set()  # rows that had devices, or had not given them up, when we last looked
        self._ending = 0  # how many of those rows belong to jobs that have ended
        self._windows = windows
        self.restarts = Restarts()

    def submitted(self, jobs: Iterable[Job], are_new: bool = False) -> None:
        """Jobs are in the store; their rows come with the next step."""
        alike: dict[tuple[str, ...], JobView] = {}  # new tasks of an array, by what they wait for
        for job in jobs:
            known = alike.get(tuple(sorted(job.holds))) if are_new else None
            view = alike[tuple(sorted(job.holds))] = waiting_view(job) if known is None else known.of_task(job.id, -1)
            self._views[job.id] = view
            if are_new:
                self._new.add(job.id)
            row = self.loop.engine.inputs.rows.of(job.id)
            if row is not None and row < self._rows and row not in self._open:  # it had ended, and comes back
                self._open = np.append(self._open, row)
                self._seen = np.concatenate([self._seen, np.full((len(_WATCHED), 1), -1)], axis=1)

    @property
    def over(self) -> int:
        """How many jobs have ended and have no process left, of those that are at hand."""
        return len(self.registry.jobs) - len(self._open) - self._ending

    def forget(self, ids: Iterable[str]) -> None:
        """Jobs have left for the archive."""
        self._views.drop(ids)

    def ordered(self, order: Order) -> None:
        """A gang is to be started: recorded before we look, because its job may have ended by then."""
        if order.verb is not Verb.START:
            return
        job = self.registry[self.loop.state.tables.ids[order.row]]
        if order.onto < 0:
            self._count_start(job, order)
        if job.state not in _ON_DEVICES:
            self._changed(order.row)

    def _count_start(self, job: Job, order: Order) -> None:
        """One restart too many is an incident."""
        now, loop = self.clock.now(), self.loop
        if self.restarts.starts(job.id, order.epoch, order.done, float(job.progress.get("done", 0.0)), now):
            what = f"job {job.id} has restarted {MOST} times in {WITHIN / 60:g} minutes and has saved and reported no progress"
            loop.engine.incidents.append(Incident(now, loop.state.decision, what))
            self.writer.add(Entry("event", {"time": now, "job": job.id, "event": "restarts", "why": what}))

    def look(self) -> None:
        """Find the jobs that have changed, write them to the store and wake the threads that wait for them."""
        t = self.loop.state.tables
        self.writer.add(*self._windows.look(t.windows, self.clock.now()))
        now_seen = t.I[np.ix_(_WATCHED, self._open)]
        changed = self._open[(now_seen != self._seen).any(axis=0)]
        new = np.array([row for row in range(self._rows, len(t.ids)) if t.ids[row]], dtype=np.int64)
        self._rows = len(t.ids)
        rows = np.concatenate([self._open, new])
        self._open = rows[~np.isin(t.I[JobColumn.PHASE, rows], _TERMINAL)]
        self._seen = t.I[np.ix_(_WATCHED, self._open)]
        engine = self.loop.engine
        arrived = [row for row in self._unseen if reason_of(engine, row) != Reason.ARRIVED]
        self.version += int(len(changed) + len(new) > 0)
        for row in dict.fromkeys((*changed.tolist(), *arrived)):
            self._changed(row)
        self._entered(new.tolist())
        if len(changed) or len(new):
            self._name_holders()
        holding = set(self.loop.reconciler.live)
        for row in {*self.loop.state.running_rows.tolist(), *holding, *self._holding}:
            self._show(row)
        self._holding = holding
        self._ending = int(np.isin(t.I[JobColumn.PHASE, list(holding)], _TERMINAL).sum()) if holding else 0

    def _entered(self, rows: list[int]) -> None:
        """New rows; of the tasks of an array that were just submitted and wait alike one is looked at."""
        t, registry, live = self.loop.state.tables, self.registry, self.loop.reconciler.live
        alike: dict[tuple[Any, ...], Job] = {}
        for row in rows:
            job, phase, reason = registry[t.ids[row]], int(t.I[JobColumn.PHASE, row]), int(t.I[JobColumn.REASON, row])
            fresh = job.launch.array and job.id in self._new and row not in live and reason not in _QUOTA
            alike_in = (job.launch.array, phase, reason, tuple(sorted(job.holds)), int(t.I[JobColumn.GPUS, row]), _as_asked(job))
            key = alike_in if fresh and phase in _WAITS else (row,)
            self._new.discard(job.id)
            known = alike.setdefault(key, job)
            if known is job:
                self._changed(row)
                continue
            before, job.state, job.reason, job.why = job.state, known.state, known.reason, known.why
            if job.state == "pending" and job.reason == "arrived":
                self._unseen.add(row)
            if job.state != before:
                self._note(job, row)
            self._views[job.id] = self._views[known.id].of_task(job.id, row)

    def _name_holders(self) -> None:
        """Update the reason of each job that waits for a quota: it names the jobs that hold it now."""
        gate, registry = self.loop.engine.quotas, self.registry
        if not gate.active:
            return
        t = self.loop.state.tables
        denied = gate.denied[np.isin(t.I[JobColumn.REASON][gate.denied], (Reason.QUOTA, Reason.OVER_QUOTA))]
        for row in denied[t.I[JobColumn.PHASE][denied] == Phase.PENDING][:_HOLDERS_OF].tolist():
            job, why = registry[t.ids[row]], gate.words(row)
            if job.why != why:
                job.why = why
                self._show(row)

    def touch(self, job: Job) -> None:
        """Something that the tables do not show has changed."""
        row = self.loop.engine.inputs.rows.of(job.id)
        if row is not None:
            self._changed(row)

    def _changed(self, row: int) -> None:
        loop, t, now = self.loop, self.loop.state.tables, self.loop.state.now
        job = self.registry[t.ids[row]]
        phase = Phase(int(t.I[JobColumn.PHASE, row]))
        before = job.state
        job.state, job.reason, job.why = state_of(job, phase, reason_of(loop.engine, row))
        (self._unseen.add if job.state == "pending" and job.reason == "arrived" else self._unseen.discard)(row)
        if phase is Phase.PENDING and int(t.I[JobColumn.REASON, row]) in (Reason.QUOTA, Reason.OVER_QUOTA):
            job.why = loop.engine.quotas.words(row)
        elif phase is Phase.PENDING and int(t.I[JobColumn.REASON, row]) == Reason.WINDOW:
            job.why = loop.engine.windows.words(row, self.clock.day_and_time)
        live = loop.reconciler.live.get(row)
        if phase is Phase.PENDING and live is not None and live.rest:
            job.state, job.reason, job.why = "suspended", "turn", "stands still until its turn comes again"
        ran = phase is Phase.RUNNING or phase is Phase.COMPLETED  # a short one may have ended before it was observed
        if ran and math.isnan(job.started) and not math.isnan(t.F[JobColumn.FIRST_START, row]):
            job.started = float(t.F[JobColumn.FIRST_START, row])
            self.endings.started(job)
        held = int(t.I[JobColumn.HELD, row])
        if held and phase is Phase.RUNNING:
            if self._sizes.setdefault(row, held) != held:
                self.endings.resized(job, row)
            self._sizes[row] = held
        if job.ended and before not in ENDED:
            job.finished = float(t.F[JobColumn.FINISH, row]) if phase is Phase.COMPLETED else now
            job.exit_code = 0 if phase is Phase.COMPLETED else job.exit_code
            job.served = float(t.F[JobColumn.SERVICE, row])
            self._sizes.pop(row, None)
            if phase is Phase.COMPLETED:
                self.registry.took(job)
            self.endings.ended(job)
            self.restarts.forget(job.id)
        elif before in ENDED and not job.ended:
            job.finished = math.nan
        if job.state != before:
            self._note(job, row)
        self._show(row)

    def _note(self, job: Job, row: int) -> None:
        """Record that a job is in another state."""
        state = self.loop.state
        entry = {"time": state.now, "job": job.id, "event": "state", "state": job.state, "reason": job.reason}
        epoch = int(state.tables.I[JobColumn.EPOCH, row])
        event = {**entry, "epoch": epoch, "devices": list(self._where(row))}
        self.writer.add(Entry("job", job.record()), Entry("event", event))

    def _show(self, row: int) -> None:
        state = self.loop.state
        job = self.registry[state.tables.ids[row]]
        self._views[job.id] = job_view(job, state.tables, row, self.clock.now(), self._where(row))

    def _where(self, row: int) -> tuple[str, ...]:
        """Devices that it holds, or has not given up yet."""
        live = self.loop.reconciler.live.get(row)
        devices = live.devices if live is not None else self.loop.engine.grants.devices(row)
        return tuple(self._name(device) for device in devices)

    def _name(self, device: int) -> str:
        cluster = self.loop.state.tables.cluster
        node = int(cluster.device_node[device])
        return f"{cluster.nodes[node].name}:{device - int(cluster.first_device[node])}"

    def view(self, setup: Setup, counters: Mapping[str, float]) -> View:
        """The view for other threads, with counters from other parts."""
        loop, state, t = self.loop, self.loop.state, self.loop.state.tables
        devices = self._devices.look(t, loop.reconciler.reality.occupants)
        counters = {
            **counters,
            "store_failures": self.writer.failures,
            "active": len(state.rows), "waiting": len(state.waiting_rows), "orders": loop.reconciler.sent,
            "started": loop.engine.started, "stopped": loop.engine.stopped, "lost_turns": loop.engine.turns.total,
            "clock_jump": self.clock.jump(), "stuck": len(self.restarts.stuck(self.clock.now())),
        }  # fmt: skip
        incidents = tuple(str(one) for one in loop.engine.incidents[-_INCIDENTS:])
        views = self._views.read_only()
        return View(
            self.clock.now(),
            setup.policy,
            dict(setup.settings),
            views,
            devices,
            counters,
            incidents,
            standing_of(loop.engine, self.version),
            tuple(t.windows.values()),
            str(loop.engine.in_charge[-1]) if loop.engine.in_charge else "",
            self._nodes.look(t),
        )


def _as_asked(job: Job) -> tuple[Any, ...]:
    """What people may have changed about one task of an array since it was submitted."""
    return (job.spec.get("name"), job.spec.get("queue"), job.launch.time_limit, *sorted(job.asked.items()))


# Jobs that start again and again and get nowhere.
#
# The service counts by its own orders; a job gets on when it begins with more saved work than before, or has
# reported more.

MOST, WITHIN = 3, 600.0  # so many restarts within so many seconds are an incident


@dataclass
class _Life:
    """A job since it got on last."""

    epoch: int  # of its newest incarnation
    saved: float  # work that it began with, at most
    reported: float  # what it had reported as done by then
    restarts: deque[float] = field(default_factory=lambda: deque(maxlen=MOST))  # when they were


class Restarts:
    """Belongs to the thread that owns the engine."""

    def __init__(self) -> None:
        self._known: dict[str, _Life] = {}

    def starts(self, job: str, epoch: int, saved: float, reported: float, now: float) -> bool:
        """An incarnation is ordered to begin, perhaps once more; whether it is one restart too many, which is said once."""
        known = self._known.get(job)
        if known is None or saved > known.saved or reported > known.reported:
            self._known[job] = _Life(epoch, saved, reported)
            return False
        if epoch <= known.epoch:
            return False
        known.epoch = epoch
        before = self._is_stuck(known, now)
        known.restarts.append(now)
        return self._is_stuck(known, now) and not before

    def stuck(self, now: float) -> list[str]:
        """Jobs that have restarted too often lately, and have got nowhere."""
        return [job for job, known in self._known.items() if self._is_stuck(known, now)]

    def forget(self, job: str) -> None:
        """It has ended."""
        self._known.pop(job, None)

    def _is_stuck(self, known: _Life, now: float) -> bool:
        return len(known.restarts) == MOST and known.restarts[0] >= now - WITHIN


# Events for windows that begin and end: each is recorded once, also across restarts of the service.


class WindowEvents:
    """Compares the windows that there are with those that were last seen."""

    def __init__(self, windows: Mapping[str, AdvanceWindow], earlier_events: Callable[[], list[Mapping[str, Any]]]) -> None:
        self._known = dict(windows)
        self._earlier_events = earlier_events
        self._recorded: set[tuple[float, str]] | None = None  # what has been written down, also by earlier services; None: not read yet

    def look(self, windows: Mapping[str, AdvanceWindow], now: float) -> list[Entry]:
        """The events that are due and not recorded yet."""
        if not windows and not self._known:
            return []
        begun = [(window.start, f"{window.name} begins: {', '.join(window.places)}") for window in windows.values() if window.start <= now]
        gone = [window for name, window in self._known.items() if windows.get(name) != window and window.end <= now]
        self._known = dict(windows)
        if self._recorded is None:
            earlier = [event for event in self._earlier_events() if event["event"] == "window"]
            self._recorded = {(float(event["time"]), str(event["why"])) for event in earlier}
        fresh = [one for one in (*begun, *((window.end, f"{window.name} ends") for window in gone)) if one not in self._recorded]
        self._recorded.update(fresh)
        return [Entry("event", {"time": at, "event": "window", "why": why}) for at, why in fresh]
