"""What routes work with: the parts of the service, and the caller."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from gantline.core.errors import NotFoundError, RefusedError, near
from gantline.lab.questions.asker import Asker, SharedAnswers
from gantline.live.scheduler.archive import Archive
from gantline.live.scheduler.retention import Retention
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.view import JobView
from gantline.live.service.access import Access, Caller, Role
from gantline.live.service.board_stream import Audiences, Pump
from gantline.live.service.guard import log
from gantline.live.service.job_output import ReportedCurves
from gantline.live.service.live_board import LiveBoard
from gantline.live.service.occupancy import LivePast
from gantline.live.store import LostStoreError, SqlStore
from gantline.live.store.records import Entry

Instants: TypeAlias = tuple[float | None, float | None]  # P50 and P90
_DIGITS = 19  # of a number that can be one of a job


@dataclass
class Service:
    """The parts of one running service."""

    scheduler: Scheduler
    store: SqlStore
    access: Access
    home: Path
    address: str = ""
    store_url: str = ""
    archive: Archive = field(default_factory=lambda: Archive(Path("archive")))
    retention: Retention | None = None  # set by `serve`
    started: float = field(default_factory=time.time)
    asker: Asker = field(default_factory=Asker)  # rolls futures forward in a separate process
    prompt: Asker = field(default_factory=Asker)  # answers quick questions in another process, which long ones do not delay
    shared: SharedAnswers = field(init=False)  # forecasts that all askers share
    changes: SharedAnswers = field(init=False)  # which change would start a job
    starts: tuple[object, Mapping[str, Instants]] = field(default_factory=lambda: (None, {}))  # of the forecast that was read last
    texts: dict[str, tuple[JobView, str]] = field(default_factory=dict)  # jobs as they were listed last, by id
    leave: Callable[[bool], None] = lambda drain: None  # ends the service; set by `serve`
    leaving: Callable[[], bool] = lambda: False  # whether it ends; set by `serve`
    curves: ReportedCurves = field(default_factory=ReportedCurves)  # what jobs have reported
    health: Health = field(init=False)
    past: LivePast = field(init=False)  # which jobs held which devices when
    audiences: Audiences = field(init=False)  # what clients see of the board
    pump: Pump = field(init=False)  # sends them what changes

    def __post_init__(self) -> None:
        self.shared, self.changes = (SharedAnswers(lambda: self.scheduler.view().standing.version) for _ in range(2))
        self.past = LivePast(self.store, self.scheduler.view, lambda at: self.scheduler.clock.wall(at), self._now)
        self.health = Health(self.scheduler, self.store)
        board = LiveBoard(self.scheduler.view, self.wall, self._now, lambda: not self.health.why_not())
        self.audiences, self.pump = Audiences(board), Pump(board, lambda: self.leaving())

    def _now(self) -> float:
        return self.scheduler.clock.wall(self.scheduler.clock.now())

    def forget(self, ids: Sequence[str]) -> None:
        """Drop what is cached about jobs that went to the archive."""
        for id in ids:
            self.texts.pop(id, None)

    def wall(self, at: float | None) -> float | None:
        """An instant of the scheduler as seconds since 1970."""
        return None if at is None else round(self.scheduler.clock.wall(at), 3)


@dataclass(frozen=True)
class Context:
    """One request: the service, and the caller."""

    service: Service
    caller: Caller

    @property
    def scheduler(self) -> Scheduler:
        return self.service.scheduler

    def jobs(self) -> dict[str, JobView]:
        """The jobs that the caller may see, in order of submission."""
        found = self.scheduler.view().jobs
        return {id: job for id, job in found.items() if self.caller.sees(job.user)}

    def listed(self) -> list[JobView]:
        """The same, as a list."""
        jobs = self.scheduler.view().jobs.values()
        return list(jobs) if self.caller.may(Role.OPERATOR) else [job for job in jobs if self.caller.sees(job.user)]

    def job(self, id: str) -> JobView:
        """One job, in memory or in the archive; a job that the caller may not see is reported as not found."""
        found = self.scheduler.view().jobs.get(id) or next((job for job in self.archived([id]) if job.id == id), None)
        if found is None or not self.caller.sees(found.user):
            raise NotFoundError(f"no job '{id[:64]}'", where="job", fix=near(id[:64], [*self.jobs()][-200:]) if self.jobs() else "")
        return found

    def archived(self, ids: Sequence[str]) -> list[JobView]:
        """Those of these jobs that are in the archive and that the caller may see; the number of an array means its tasks."""
        old = self.scheduler.archived.get("newest", 0)
        numbers = [id for id in ids if (number := id.partition("_")[0]).isdecimal() and len(number) < _DIGITS and int(number) <= old]
        found = self.service.archive.jobs(numbers).values() if numbers else ()
        return [view for view, _, _ in found if self.caller.sees(view.user)]

    def named(self, ids: Sequence[str]) -> list[JobView]:
        """These jobs, once each; the number of an array means its tasks."""
        known = self.scheduler.view().jobs
        arrays: dict[str, list[JobView]] = {id: [] for id in ids if "_" not in id and id not in known}
        there = [job for job in known.values() if job.array in arrays and self.caller.sees(job.user)] if arrays else []
        for job in there or (self.archived([*arrays]) if arrays else ()):
            if job.array in arrays:
                arrays[job.array].append(job)
        return [*{job.id: job for id in ids for job in arrays.get(id) or [self.job(id)]}.values()]

    def old(self, states: Sequence[str] | None, user: str) -> list[JobView]:
        """Jobs in the archive that the caller may see, in order of submission."""
        wanted = {"state": list(states or ()), "user": [user] if user else []}
        found = self.service.archive.views({key: values for key, values in wanted.items() if values})
        return [job for job in found if self.caller.sees(job.user)]

    def past(self) -> list[JobView]:
        """All jobs that have succeeded, those in the archive first."""
        old = self.old(["succeeded"], "") if self.scheduler.archived else []
        return [*old, *self.listed()]

    def check_at_hand(self, jobs: Sequence[JobView], where: str) -> None:
        """Refuse to do something with a job that has left the store."""
        old = next((job for job in jobs if job.is_archived), None)
        if old is not None and old.finished is not None:
            when = self.scheduler.clock.day_and_time(old.finished)
            fix = "leave it out: it has ended" if where == "after" else "submit it again"
            raise RefusedError(f"job '{old.id}' had ended: {old.state} at {when}; it is in the archive", where=where, fix=fix)

    def note(self, event: str, **body: Any) -> None:
        """Record an event with the user who caused it."""
        at = self.scheduler.clock.now()
        self.service.store.append([Entry("event", {"time": at, "event": event, "user": self.caller.user, **body})])


def job_record(service: Service, job: JobView) -> dict[str, Any]:
    """One job as clients see it; times are seconds since 1970."""
    return {
        "id": job.id,
        "name": job.name,
        "state": job.state,
        "reason": job.reason,
        "why": job.why,
        "gpus": job.gpus,
        "min_gpus": job.min_gpus,
        "max_gpus": job.max_gpus,
        "exit_code": job.exit_code,
        "user": job.user,
        "queue": job.queue,
        "priority": job.priority,
        "labels": dict(job.labels),
        "array": job.array,
        "devices": list(job.devices),
        "submitted": service.wall(job.submitted),
        "started": service.wall(job.started),
        "ended": service.wall(job.finished),
        "restarts": job.restarts,
        "resizes": job.resizes,
        "failures": job.failures,
        "epoch": job.epoch,
        "service": round(job.service, 3),
        "progress": _shown(job.progress),
        **({"archived": True} if job.is_archived else {}),
    }


def job_text(service: Service, job: JobView) -> str:
    """The same as JSON; most jobs are as they were when they were listed last."""
    known = service.texts.get(job.id)
    if known is None or known[0] is not job:
        known = service.texts[job.id] = (job, json.dumps(job_record(service, job), ensure_ascii=False))
    return known[1]


def _shown(progress: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in progress.items() if value is not None}


# Whether a service does what it is there for: it decides, and what it is told can be written down.

LIMIT = 10.0  # seconds for which writes may fail before that is an incident
_AGAIN = 1.0  # seconds between two attempts to write while writes fail
_FOLD = 5.0  # seconds between two times that the write-ahead log is brought into the file


class Health:
    """Of one service; `look` is called twice a second, everything else from any thread."""

    def __init__(self, scheduler: Scheduler, store: SqlStore) -> None:
        self.scheduler, self.store = scheduler, store
        self._complained = False
        self._tried = self._folded = time.monotonic()

    def why_not(self) -> str:
        """What is wrong; empty: nothing."""
        if not self.scheduler.alive:
            return "the scheduler has ended"
        return "the store cannot be written" if self.failed_for() >= LIMIT else ""

    def failed_for(self) -> float:
        """Seconds for which writes have failed; 0: they do not."""
        failing = self.store.failing
        return 0.0 if failing is None else time.monotonic() - failing[0]

    def look(self) -> None:
        """Try again to write where that fails, and say when it has failed for too long, and when it does not any more."""
        now, failing = time.monotonic(), self.store.failing
        if failing is not None and now >= self._tried + _AGAIN:
            self._tried = now
            with contextlib.suppress(OSError, LostStoreError):  # of a lost one the scheduler hears, too
                self.store.try_again()
            failing = self.store.failing
        if failing is None:
            if self._complained:
                self._tell("store-recovered", "the store can be written again")
            if now >= self._folded + _FOLD:
                self._folded = now
                self.store.fold()
        elif self.failed_for() >= LIMIT and not self._complained:
            self._tell("store-failed", f"the store has not been writable for {self.failed_for():.0f} s: {failing[1]}")

    def _tell(self, event: str, what: str) -> None:
        self._complained = not self._complained
        (log.error if self._complained else log.warning)("%s", what)
        self.scheduler.note_incident(event, what)
