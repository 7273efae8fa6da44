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
from gantline.live.runners.kubernetes.gang import PodGang
from gantline.live.runners.kubernetes.pods_and_nodes import MARK
from gantline.live.runners.kubernetes.workload_lifecycle import Admission
from gantline.live.runners.kubernetes.workload_spec import SIZES, asks_of, spec_of_guest
from gantline.live.runners.kubernetes.workloads import KINDS, QUEUE, Guest, GuestKind, line
from gantline.live.runners.kubernetes.write_queue import GuestChanges

_LOG = logging.getLogger("gantline.live")
_SUSPENDING = 22  # of version 1: the first whose API server can suspend a Job unless it is told otherwise
_PAUSE = 0.5  # seconds before a scheduler is asked again that does not answer


def reader_of(kind: GuestKind, minor: int) -> Callable[[Object], Guest]:
    """How objects of a kind are read from an API server of that version."""
    return lambda value: Guest(kind, value, by_parallelism=minor < _SUSPENDING)


def kinds_served(client: ApiClient) -> list[GuestKind]:
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
class Intake:
    """Objects that were found, and the jobs that they are."""

    work: Admission
    minor: int
    stays: dict[str, Stay] = field(default_factory=dict)  # by uid
    _left: dict[str, str] = field(default_factory=dict)  # uid -> a job of the last service that its object may not name yet
    _is_closing: bool = False

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "gantline-intake")
        self.work.look_at, self.work.changes = self.look, GuestChanges(self.work.client, self.work.writes, self.saw, self._lose)

    def begin(self) -> None:
        """Go on with the jobs of the last service; objects may have lost their label, or be gone, since then."""
        titles = self.work.contact.found.present()
        self._left = {title.rpartition("/")[2]: job for job, title in titles.items()}
        for guest in list(self.work.sight.guests.values()):
            self.saw(guest)
        for name, object_, uid in (title.split("/") for title in titles.values()):
            if uid in self._left:
                head = {"namespace": self.work.terms.namespace, "name": object_, "uid": uid, "resourceVersion": "0"}
                kind = next(one for one in KINDS if one.name == name)
                self.stays[uid] = Stay({}, self._left.pop(uid))
                self.work.changes.ask_after(reader_of(kind, self.minor)({"metadata": head}))

    def saw(self, guest: Guest, is_gone: bool = False) -> None:
        """An object was made, has changed or is gone. A watch tells one that was deleted and one that has lost its label alike."""
        if guest.head.get("deletionTimestamp"):
            self._lose(guest)
        elif is_gone:
            self.work.changes.ask_after(guest)
        elif not guest.has_label:
            self._let_go(guest)
        else:
            self.work.sight.see_guest(guest)
            self.look(guest.uid)

    def look(self, uid: str) -> None:
        """What is to be done about an object now."""
        guest, gang, home = self.work.sight.guests.get(uid), self.work.gang_of_guest(uid), self.work.terms.home
        if guest is None:
            return
        stay = self.stays[uid] = self.stays.get(uid) or self._arrival(guest)
        if gang is None and (stay.is_leaving or guest.end[0]):
            self._release(guest) if stay.is_leaving else self._cancel(stay)
            return
        if not stay.is_busy and not stay.is_leaving:
            stay = self.stays[uid] = self._compared(guest, stay, gang)
        if gang is None and not guest.misread and (not guest.is_suspended or (guest.kind.replicas and not guest.names_us)):
            self._write(guest, guest.hold(**stay.marks(guest, home)))
        elif not stay.is_leaving and not stay.is_marked(guest, home):
            self._write(guest, guest.mark(**stay.marks(guest, home)))
        elif gang is not None:
            self.work.settle(gang)
        elif not stay.job and not stay.refused and not stay.is_busy:
            stay.is_busy = True
            self._later(partial(self._submit, guest, stay))

    # --- edits ----------------------------------------------------------------------------------------------------------
    def _arrival(self, guest: Guest) -> Stay:
        """One that is seen for the first time, or was taken in by the last service."""
        asks, job = asks_of(guest, self.work.slots), self._left.pop(guest.uid, "")
        if guest.notes.get(f"{MARK}/home") == self.work.terms.home:
            return Stay(guest.asked or asks, job or str(guest.notes.get(f"{MARK}/job") or ""))
        return Stay(asks, job)

    def _compared(self, guest: Guest, stay: Stay, gang: PodGang | None) -> Stay:
        """What its owner asks for now, held against what it was submitted with."""
        asks = asks_of(guest, self.work.slots)
        if asks == stay.asked:
            stay.refused, stay.answered = ("", None) if stay.job else (stay.refused, None)
        elif not stay.job:
            return Stay(asks)
        elif asks == stay.answered:
            return stay
        elif sizes := self._resized(guest, stay, asks):
            stay.is_busy = True
            self._later(partial(self._resize, guest, stay, asks, sizes))
        elif gang is not None:
            stay.refused = self._refusal(guest) or runs_as_it_was(stay.job, stay.changed(asks))
        else:
            self._cancel(stay)
            return Stay(asks)
        return stay

    def _refusal(self, guest: Guest) -> str:
        try:
            self._spec(guest)
            return ""
        except GantlineError as error:
            return str(error)

    def _resized(self, guest: Guest, stay: Stay, asks: Object) -> tuple[int, int, int] | None:
        """Devices that it asks for now and their bounds, where nothing else has changed and its job can be resized."""
        contact = self.work.contact
        row = None if contact.found.is_over(stay.job) else contact.row_of(stay.job)
        if row is None or not stay.changed(asks) <= SIZES or self._refusal(guest):
            return None
        spec, launch = self._spec(guest), contact.task(row).launch
        if "gpus" not in spec["resources"] or spec["processes"] != "gpus" or launch.resumes != ("checkpoint" in spec):
            return None
        gpus, elastic = int(spec["resources"]["gpus"]), spec.get("elastic") or {}
        return gpus, int(elastic.get("min", gpus)), int(elastic.get("max", gpus))

    def _spec(self, guest: Guest) -> Object:
        return spec_of_guest(guest, list(self.work.sight.nodes.values()), self.work.slots)

    # --- asked of the scheduler, in a thread of its own -----------------------------------------------------------------
    def _submit(self, guest: Guest, stay: Stay) -> None:
        job = why = ""
        try:
            job = self.work.contact.found.submit(spec_of(self._spec(guest), guest.name), self.work.terms.namespace)
        except UnreachableError:
            raise
        except GantlineError as error:
            why = str(error)

        def done() -> None:
            stay.job, stay.refused, stay.is_busy = job, why, False
            if self.stays.get(guest.uid) is not stay or stay.is_leaving:  # it was deleted meanwhile, or has lost its label
                self._cancel(stay)
            self.look(guest.uid)

        self.work.writes.post(done)

    def _resize(self, guest: Guest, stay: Stay, asks: Object, sizes: tuple[int, int, int]) -> None:
        why = ""
        try:
            self.work.contact.found.resize(stay.job, *sizes)
        except UnreachableError:
            raise
        except GantlineError as error:
            why = str(error)

        def done() -> None:
            stay.is_busy, stay.refused = False, why
            stay.asked, stay.answered = (stay.asked, asks) if why else (asks, None)
            self.look(guest.uid)

        self.work.writes.post(done)

    def _cancel(self, stay: Stay) -> None:
        if stay.job and not stay.is_over:
            stay.is_over = True
            self._later(partial(self.work.contact.found.cancel, stay.job))

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
    def _let_go(self, guest: Guest) -> None:
        """Its job is cancelled; when its gang is over it is left to its owner."""
        stay = self.stays.setdefault(guest.uid, Stay({}))
        stay.is_leaving = True
        self._cancel(stay)
        self.work.sight.see_guest(guest)
        self.look(guest.uid)

    def _release(self, guest: Guest) -> None:
        """Leave it as its owner made it; with a label that has come back meanwhile it is taken in anew."""

        def refused(refusal: ApiError) -> None:
            _LOG.warning("%s could not be let go: %s", guest.title, refusal)
            self._lose(guest)

        if change := guest.release():
            self.work.changes.make(guest, change, refused)
            return
        self._lose(guest)
        if guest.has_label:
            self.saw(guest)

    def _lose(self, guest: Guest) -> None:
        self.work.sight.guests.pop(guest.uid, None)
        if (stay := self.stays.pop(guest.uid, None)) is not None:
            self._cancel(stay)
        if (gang := self.work.gang_of_guest(guest.uid)) is not None:
            self.work.settle(gang)

    def absent(self, kind: GuestKind, uids: set[str], version: int) -> None:
        """A list of that version has only these objects of a kind."""
        for guest in list(self.work.sight.guests.values()):
            if guest.kind == kind and guest.uid not in uids and guest.version <= version:
                self.saw(guest, is_gone=True)

    def _write(self, guest: Guest, change: Object) -> None:
        self.work.changes.make(guest, change, lambda refusal: _LOG.warning("%s could not be changed: %s", guest.title, refusal))

    def close(self) -> None:
        self._is_closing = True
        self._pool.shutdown(wait=True, cancel_futures=True)


def follow_guests(
    client: ApiClient,
    namespace: str,
    kinds: Sequence[GuestKind],
    minor: int,
    see: Callable[[Guest, bool], None],
    only: Callable[[GuestKind, set[str], int], None],
) -> list[Follower]:
    """One follower for each of these kinds."""

    def follower(kind: GuestKind) -> Follower:
        read = reader_of(kind, minor)
        path = path_of(kind.plural, namespace, group=kind.group)
        return Follower(client, path, lambda value, gone: see(read(value), gone), partial(only, kind), labelSelector=QUEUE)

    return [follower(kind) for kind in kinds]


# An object of the cluster while it is a job here: what it asked for when it was submitted, and what is said to its
# owner.


@dataclass
class Stay:
    """One object."""

    asked: Object  # what its owner asked for when it was submitted
    job: str = ""  # empty: it is not submitted yet, or cannot be
    refused: str = ""  # why what it asks for now is not done
    answered: Object | None = None  # the change of a job that the scheduler has refused: the same is not tried again
    is_busy: bool = False  # the scheduler has been asked, and has not answered
    is_leaving: bool = False  # its owner has taken the label away
    is_over: bool = False  # its job was cancelled, because it had ended

    def marks(self, guest: Guest, home: str) -> dict[str, str | None]:
        """Annotations that the object shall have."""
        return {"asked": line(self.asked), "home": home, "job": self.job or None, "refused": self.refused or guest.spoilt or None}

    def is_marked(self, guest: Guest, home: str) -> bool:
        return all(guest.notes.get(f"{MARK}/{key}") == value for key, value in self.marks(guest, home).items())

    def changed(self, asks: Object) -> set[str]:
        """Names of what is asked for now, and was not when it was submitted."""
        return {name for name in {*asks, *self.asked} if asks.get(name) != self.asked.get(name)}


def runs_as_it_was(job: str, names: Iterable[str]) -> str:
    """Said of one whose owner asks for something else, which a job cannot become while it runs."""
    what = ", ".join(sorted(names))
    return f"it runs as it was submitted; {what}: as it is now when it is next suspended (gantline requeue {job} does that at once)"
