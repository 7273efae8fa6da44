"""Takes in objects of the cluster with the label ``gantline.io/queue``: held, submitted, changed and cancelled as their owners say.

Runs in the runner's thread; what is asked of the scheduler is asked in a thread of its own. An annotation says what an object asked for
when it was submitted, so that an edit is seen also where it was made while no service was there. One that waits is submitted anew, or
resized; one that runs is resized, or told that its edit waits. Without its label it is left as its owner made it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from gantline.core.errors import GantlineError, UnreachableError
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.kubernetes.access import Object, path_of
from gantline.live.runners.kubernetes.client import ApiClient, ApiError, Follower
from gantline.live.runners.kubernetes.gang_lifecycle import PodGang
from gantline.live.runners.kubernetes.pods_and_nodes import MARK
from gantline.live.runners.kubernetes.workload_lifecycle import SIZES, WorkloadLifecycle, asks_of, spec_of_workload
from gantline.live.runners.kubernetes.workloads import KINDS, QUEUE, Workload, WorkloadKind, line
from gantline.live.runners.kubernetes.write_queue import WorkloadChanges

_LOG = logging.getLogger("gantline.live")
_SUSPENDING = 22  # of version 1: the first whose API server can suspend a Job unless it is told otherwise
_PAUSE = 0.5  # seconds before a scheduler is asked again that does not answer


def reader_of(kind: WorkloadKind, minor: int) -> Callable[[Object], Workload]:
    """How objects of a kind are read from an API server of that version."""
    return lambda value: Workload(kind, value, by_parallelism=minor < _SUSPENDING)


def kinds_served(client: ApiClient) -> list[WorkloadKind]:
    """Kinds that the API server knows: those of operators are there once their definitions are installed."""
    found: dict[str, set[str]] = {}
    for group in {kind.group for kind in KINDS}:
        try:
            found[group] = {str(one["name"]) for one in client.get(f"/apis/{group}").get("resources") or ()}
        except ApiError as error:
            if error.code != 404:
                raise
    return [kind for kind in KINDS if kind.plural in found.get(kind.group, ())]


@dataclass
class WorkloadController:
    """Objects that were found, and the jobs that they are."""

    work: WorkloadLifecycle
    minor: int
    admissions: dict[str, Admission] = field(default_factory=dict)  # by uid
    _left: dict[str, str] = field(default_factory=dict)  # uid -> a job of the last service that its object may not name yet
    _is_closing: bool = False

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "gantline-intake")
        self.work.look_at, self.work.changes = self.look, WorkloadChanges(self.work.client, self.work.writes, self.saw, self._lose)

    def begin(self) -> None:
        """Go on with the jobs of the last service; objects may have lost their label, or be gone, since then."""
        titles = self.work.contact.external.present()
        self._left = {title.rpartition("/")[2]: job for job, title in titles.items()}
        for workload in list(self.work.cache.workloads.values()):
            self.saw(workload)
        for name, object_, uid in (title.split("/") for title in titles.values()):
            if uid in self._left:
                head = {"namespace": self.work.terms.namespace, "name": object_, "uid": uid, "resourceVersion": "0"}
                kind = next(one for one in KINDS if one.name == name)
                self.admissions[uid] = Admission({}, self._left.pop(uid))
                self.work.changes.ask_after(reader_of(kind, self.minor)({"metadata": head}))

    def saw(self, workload: Workload, is_gone: bool = False) -> None:
        """An object was made, has changed or is gone. A watch tells one that was deleted and one that has lost its label alike."""
        if workload.head.get("deletionTimestamp"):
            self._lose(workload)
        elif is_gone:
            self.work.changes.ask_after(workload)
        elif not workload.has_label:
            self._let_go(workload)
        else:
            self.work.cache.see_workload(workload)
            self.look(workload.uid)

    def look(self, uid: str) -> None:
        """What is to be done about an object now."""
        workload, gang, home = self.work.cache.workloads.get(uid), self.work.gang_of_workload(uid), self.work.terms.home
        if workload is None:
            return
        admission = self.admissions[uid] = self.admissions.get(uid) or self._arrival(workload)
        if gang is None and (admission.is_leaving or workload.end[0]):
            self._release(workload) if admission.is_leaving else self._cancel(admission)
            return
        if not admission.is_busy and not admission.is_leaving:
            admission = self.admissions[uid] = self._compared(workload, admission, gang)
        if gang is None and not workload.misread and (not workload.is_suspended or (workload.kind.replicas and not workload.names_us)):
            self._write(workload, workload.hold(**admission.marks(workload, home)))
        elif not admission.is_leaving and not admission.is_marked(workload, home):
            self._write(workload, workload.mark(**admission.marks(workload, home)))
        elif gang is not None:
            self.work.settle(gang)
        elif not admission.job and not admission.refused and not admission.is_busy:
            admission.is_busy = True
            self._later(partial(self._submit, workload, admission))

    # --- edits ----------------------------------------------------------------------------------------------------------
    def _arrival(self, workload: Workload) -> Admission:
        """One that is seen for the first time, or was taken in by the last service."""
        asks, job = asks_of(workload, self.work.slots), self._left.pop(workload.uid, "")
        if workload.notes.get(f"{MARK}/home") == self.work.terms.home:
            return Admission(workload.asked or asks, job or str(workload.notes.get(f"{MARK}/job") or ""))
        return Admission(asks, job)

    def _compared(self, workload: Workload, admission: Admission, gang: PodGang | None) -> Admission:
        """What its owner asks for now, held against what it was submitted with."""
        asks = asks_of(workload, self.work.slots)
        if asks == admission.asked:
            admission.refused, admission.answered = ("", None) if admission.job else (admission.refused, None)
        elif not admission.job:
            return Admission(asks)
        elif asks == admission.answered:
            return admission
        elif sizes := self._resized(workload, admission, asks):
            admission.is_busy = True
            self._later(partial(self._resize, workload, admission, asks, sizes))
        elif gang is not None:
            admission.refused = self._refusal(workload) or runs_as_it_was(admission.job, admission.changed(asks))
        else:
            self._cancel(admission)
            return Admission(asks)
        return admission

    def _refusal(self, workload: Workload) -> str:
        try:
            self._spec(workload)
            return ""
        except GantlineError as error:
            return str(error)

    def _resized(self, workload: Workload, admission: Admission, asks: Object) -> tuple[int, int, int] | None:
        """Devices that it asks for now and their bounds, where nothing else has changed and its job can be resized."""
        contact = self.work.contact
        row = None if contact.external.is_over(admission.job) else contact.row_of(admission.job)
        if row is None or not admission.changed(asks) <= SIZES or self._refusal(workload):
            return None
        spec, launch = self._spec(workload), contact.task(row).launch
        if "gpus" not in spec["resources"] or spec["processes"] != "gpus" or launch.resumes != ("checkpoint" in spec):
            return None
        gpus, elastic = int(spec["resources"]["gpus"]), spec.get("elastic") or {}
        return gpus, int(elastic.get("min", gpus)), int(elastic.get("max", gpus))

    def _spec(self, workload: Workload) -> Object:
        return spec_of_workload(workload, list(self.work.cache.nodes.values()), self.work.slots)

    # --- asked of the scheduler, in a thread of its own -----------------------------------------------------------------
    def _submit(self, workload: Workload, admission: Admission) -> None:
        job = why = ""
        try:
            job = self.work.contact.external.submit(spec_of(self._spec(workload), workload.name), self.work.terms.namespace)
        except UnreachableError:
            raise
        except GantlineError as error:
            why = str(error)

        def done() -> None:
            admission.job, admission.refused, admission.is_busy = job, why, False
            if (
                self.admissions.get(workload.uid) is not admission or admission.is_leaving
            ):  # it was deleted meanwhile, or has lost its label
                self._cancel(admission)
            self.look(workload.uid)

        self.work.writes.post(done)

    def _resize(self, workload: Workload, admission: Admission, asks: Object, sizes: tuple[int, int, int]) -> None:
        why = ""
        try:
            self.work.contact.external.resize(admission.job, *sizes)
        except UnreachableError:
            raise
        except GantlineError as error:
            why = str(error)

        def done() -> None:
            admission.is_busy, admission.refused = False, why
            admission.asked, admission.answered = (admission.asked, asks) if why else (asks, None)
            self.look(workload.uid)

        self.work.writes.post(done)

    def _cancel(self, admission: Admission) -> None:
        if admission.job and not admission.is_over:
            admission.is_over = True
            self._later(partial(self.work.contact.external.cancel, admission.job))

    def _later(self, act: Callable[[], None]) -> None:
        """In the thread that asks the scheduler, until that has answered."""

        def again() -> None:
            while not self._is_closing:
                try:
                    act()
                    return
                except UnreachableError:
                    time.sleep(_PAUSE)

        if not self._is_closing:
            self._pool.submit(again)

    # --- objects that leave ---------------------------------------------------------------------------------------------
    def _let_go(self, workload: Workload) -> None:
        """Its job is cancelled; when its gang is over it is left to its owner."""
        admission = self.admissions.setdefault(workload.uid, Admission({}))
        admission.is_leaving = True
        self._cancel(admission)
        self.work.cache.see_workload(workload)
        self.look(workload.uid)

    def _release(self, workload: Workload) -> None:
        """Leave it as its owner made it; with a label that has come back meanwhile it is taken in anew."""

        def refused(refusal: ApiError) -> None:
            _LOG.warning("%s could not be let go: %s", workload.title, refusal)
            self._lose(workload)

        if change := workload.release():
            self.work.changes.make(workload, change, refused)
            return
        self._lose(workload)
        if workload.has_label:
            self.saw(workload)

    def _lose(self, workload: Workload) -> None:
        self.work.cache.workloads.pop(workload.uid, None)
        if (admission := self.admissions.pop(workload.uid, None)) is not None:
            self._cancel(admission)
        if (gang := self.work.gang_of_workload(workload.uid)) is not None:
            self.work.settle(gang)

    def absent(self, kind: WorkloadKind, uids: set[str], version: int) -> None:
        """A list of that version has only these objects of a kind."""
        for workload in list(self.work.cache.workloads.values()):
            if workload.kind == kind and workload.uid not in uids and workload.version <= version:
                self.saw(workload, is_gone=True)

    def _write(self, workload: Workload, change: Object) -> None:
        self.work.changes.make(workload, change, lambda refusal: _LOG.warning("%s could not be changed: %s", workload.title, refusal))

    def close(self) -> None:
        self._is_closing = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def follow_workloads(
    client: ApiClient,
    namespace: str,
    kinds: Sequence[WorkloadKind],
    minor: int,
    see: Callable[[Workload, bool], None],
    only: Callable[[WorkloadKind, set[str], int], None],
) -> list[Follower]:
    """One follower for each of these kinds."""

    def follower(kind: WorkloadKind) -> Follower:
        read = reader_of(kind, minor)
        path = path_of(kind.plural, namespace, group=kind.group)
        return Follower(client, path, lambda value, gone: see(read(value), gone), partial(only, kind), labelSelector=QUEUE)

    return [follower(kind) for kind in kinds]


# An object of the cluster while it is a job here: what it asked for when it was submitted, and what is said to its
# owner.


@dataclass
class Admission:
    """One object."""

    asked: Object  # what its owner asked for when it was submitted
    job: str = ""  # empty: it is not submitted yet, or cannot be
    refused: str = ""  # why what it asks for now is not done
    answered: Object | None = None  # the change of a job that the scheduler has refused: the same is not tried again
    is_busy: bool = False  # the scheduler has been asked, and has not answered
    is_leaving: bool = False  # its owner has taken the label away
    is_over: bool = False  # its job was cancelled, because it had ended

    def marks(self, workload: Workload, home: str) -> dict[str, str | None]:
        """Annotations that the object shall have."""
        return {"asked": line(self.asked), "home": home, "job": self.job or None, "refused": self.refused or workload.unreadable or None}

    def is_marked(self, workload: Workload, home: str) -> bool:
        return all(workload.notes.get(f"{MARK}/{key}") == value for key, value in self.marks(workload, home).items())

    def changed(self, asks: Object) -> set[str]:
        """Names of what is asked for now, and was not when it was submitted."""
        return {name for name in {*asks, *self.asked} if asks.get(name) != self.asked.get(name)}


def runs_as_it_was(job: str, names: Iterable[str]) -> str:
    """Said of one whose owner asks for something else, which a job cannot become while it runs."""
    what = ", ".join(sorted(names))
    return f"it runs as it was submitted; {what}: as it is now when it is next suspended (gantline requeue {job} does that at once)"
