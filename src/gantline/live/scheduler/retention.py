"""How long ended jobs stay in the store, and the thread that archives them then.

The store and the service's memory hold what runs and waits, and of what has ended the newest jobs only: a service that has run a hundred
thousand jobs costs what one that has run ten thousand does. What is older is in the archive (`archive.py`). The order of things makes
that safe: first the archive is on the disk; then one transaction takes the jobs out of the store, together with a checkpoint that does not
need them; then memory forgets them; folders go last, by the archive alone.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from dataclasses import dataclass
from functools import partial
from typing import Any

from gantline.core.errors import GantlineError, UnreachableError
from gantline.live.scheduler.archive import Archive, totals_of
from gantline.live.scheduler.job_registry import Job
from gantline.live.scheduler.loop_thread import Answer, settle
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.setup import checkpoint_of
from gantline.live.store import SqlStore
from gantline.live.store.records import Entry
from gantline.live.wall_time import Message

_LOG = logging.getLogger("gantline.live")
_BLOCK = 2000  # jobs that are archived together
_MOST, _LEAST = 3600.0, 1.0  # seconds between two looks that nothing has rung for


@dataclass(frozen=True)
class Keep:
    """What stays at hand of jobs that have ended: those that ended less than `age` seconds ago, and of them the newest `jobs`."""

    age: float = math.inf
    jobs: int = 10_000

    def to_json(self) -> dict[str, Any]:
        return {"age": None if math.isinf(self.age) else self.age, "jobs": self.jobs}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Keep:
        return Keep(math.inf if value.get("age") is None else float(value["age"]), int(value.get("jobs", Keep.jobs)))


class Retention:
    """Archives jobs of one service, from a thread of its own; `forgotten` receives the ids of those that are gone."""

    def __init__(
        self,
        scheduler: Scheduler,
        store: SqlStore,
        archive: Archive,
        keep: Keep,
        forgotten: Callable[[Sequence[str]], None] = lambda ids: None,
    ) -> None:
        self.scheduler, self.store, self.archive, self.keep, self.forgotten = scheduler, store, archive, keep, forgotten
        self.failure = ""  # why the last attempt failed
        self._bell, self._turn, self._closes = threading.Event(), threading.Lock(), threading.Event()
        self._ended: dict[str, float] = {}  # when the jobs that are being archived ended
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self.scheduler.crowded = self._bell.set
        self._bell.set()  # there may be some from before
        self._thread = threading.Thread(target=self._work, name="gantline-retention", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closes.set()
        self._bell.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        every = min(_MOST, max(_LEAST, self.keep.age / 10))
        while not self._closes.is_set():
            self._bell.wait(every)
            self._bell.clear()
            if self._closes.is_set():
                return
            try:
                self.look(compact=math.isfinite(self.keep.age))
                self.failure = ""
            except Exception as error:  # a full disk, perhaps: jobs stay where they are, and it is tried again
                self._note(error)
                self._closes.wait(_LEAST)  # not for the bell: what could not leave has rung it by asking
                self._bell.set()

    def _note(self, error: Exception) -> None:
        """Say once why jobs cannot be archived, however often it is tried."""
        before, self.failure = self.failure, error.what if isinstance(error, GantlineError) else f"{type(error).__name__}: {error}"
        if self.failure != before:
            _LOG.warning("jobs could not be archived: %s", self.failure, exc_info=not isinstance(error, GantlineError))

    def look(self, *, compact: bool = False) -> int:
        """Archive what is due; how many jobs that was. `compact`: also remove what nothing needs from the store."""
        with self._turn:
            due = self._asked(self._due)
            for ids in _blocks(due):
                self.archive.add(self._records(ids), self.scheduler.born)
                self._asked(partial(self._leave, ids))
            if math.isfinite(self.keep.age):
                self._remove_folders()
            if compact and (due or math.isinf(self.keep.age)):
                self.store.compact()
            return sum(len(unit) for unit in due)

    # --- in the scheduler's thread ----------------------------------------------------------------------------------------
    def _due(self) -> list[list[str]]:
        """Jobs that are to leave, the oldest first; those of an array together. The store has all of them: the archive reads it there."""
        self.scheduler.writer.write([])
        registry, now = self.scheduler.registry, self.scheduler.clock.now()
        units = [[job.id] for job in registry if not job.launch.array] + [list(ids) for ids in registry.arrays.values()]
        over = [(max(registry[id].finished for id in unit), unit) for unit in units if all(registry[id].ended for id in unit)]
        over.sort(key=lambda one: one[0])
        newer, found = sum(len(unit) for _, unit in over), []
        for ended, unit in over:
            newer -= len(unit)
            if (newer >= self.keep.jobs or ended < now - self.keep.age) and all(self._may_leave(registry[id]) for id in unit):
                found.append(unit)  # by its own place in the order: for an older one that must stay no newer one leaves
        self._ended = {id: registry[id].finished for unit in found for id in unit}
        self._expect(self.scheduler.observer.over - len(self._ended))
        return found

    def _expect(self, stay: int) -> None:
        """Set how many ended jobs wake this thread: a tenth more than may stay, or than must (other jobs wait for them).

        A tenth, so that they are archived together; a part of it that never fills leaves when the thread looks by itself. Of fewer than
        ten there is no tenth: each job more than that wakes it.
        """
        self.scheduler.crowd = max(self.keep.jobs, stay) + self.keep.jobs // 10

    def _may_leave(self, job: Job) -> bool:
        """Whether it is not needed: its processes are gone, and no other job waits for it."""
        registry, loop = self.scheduler.registry, self.scheduler.loop
        row = loop.engine.inputs.rows.of(job.id)
        if not job.ended or job.leaving or (row is not None and row in loop.reconciler.live):
            return False
        return all(registry[other].ended for other in registry.waiting_for.get(job.id, ()) if other in registry)

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        """The answer from the scheduler's thread, when it is between two steps and a checkpoint can be made.

        It is not waited for where the service ends meanwhile.
        """
        quiet = self.scheduler.when_quiet
        future: Future[Answer] = Future()

        def call() -> None:
            try:
                future.set_result(question())
            except BaseException as error:
                settle(future, error, None)

        self.scheduler.post(Message(call=lambda: quiet.append(call)))
        while not wait_for([future], _LEAST).done:
            if self._closes.is_set() or not self.scheduler.alive:
                raise UnreachableError("the service ends", where="archive", fix="the next one goes on with it")
        return future.result()

    def _is_archived(self, job: Job) -> bool:
        return self._may_leave(job) and job.finished == self._ended.get(job.id)

    def _leave(self, ids: Sequence[str]) -> None:
        """The store and then memory forget them, but for those that are back, or have come back and ended since they were archived."""
        scheduler = self.scheduler
        units = dict.fromkeys(scheduler.registry[id].launch.array or id for id in ids if id in scheduler.registry)
        members = [scheduler.registry.arrays.get(unit, [unit]) for unit in units]
        gone = [id for unit in members if all(self._is_archived(scheduler.registry[id]) for id in unit) for id in unit]
        totals = totals_of([scheduler.registry[id] for id in gone], scheduler.archived) | {"newest": scheduler.registry.newest}
        saved = checkpoint_of(scheduler.loop, scheduler.setup, scheduler.born)
        scheduler.writer.write([Entry("checkpoint", saved), Entry("archived", {"jobs": gone, "totals": totals})])
        scheduler.archived, scheduler.writer.lines = totals, 0
        scheduler.forget(gone)
        self.forgotten(gone)

    # --- in this thread -----------------------------------------------------------------------------------------------------
    def _records(self, ids: Sequence[str]) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
        events = self.store.events_of(ids)
        return [(record, events.get(record["id"], [])) for record in self.store.some_jobs(ids)]

    def _remove_folders(self) -> None:
        """Output and checkpoints of archived jobs go when the jobs ended longer ago than is kept; nothing else in the home is touched."""
        runner = self.scheduler.runner
        there = runner.jobs_kept() - set(self.scheduler.registry.jobs)
        if there:
            for id in there & set(self.archive.ended_before(self.scheduler.wall() - self.keep.age)):
                runner.remove(id)


def _blocks(units: Sequence[Sequence[str]]) -> list[list[str]]:
    """Ids in blocks; no array is split."""
    found: list[list[str]] = []
    for unit in units:
        if not found or len(found[-1]) + len(unit) > _BLOCK:
            found.append([])
        found[-1] += unit
    return found
