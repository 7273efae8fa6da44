"""Takes in objects of the cluster with the label ``gantline.io/queue``: held, submitted, and cancelled when they are deleted.

Runs in the runner's thread; submissions wait for the scheduler, and are made by a thread of their own. The request of a submission is the
object's uid, so that one which is made twice, by a service that was killed between, is one job.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

from gantline.core.errors import GantlineError, UnreachableError
from gantline.runtime.kubernetes.admission import Admission
from gantline.runtime.kubernetes.client import ApiClient, ApiError
from gantline.runtime.kubernetes.following import Follower
from gantline.runtime.kubernetes.guest_spec import spec_of_guest
from gantline.runtime.kubernetes.guests import KINDS, QUEUE, Guest, GuestKind
from gantline.runtime.kubernetes.objects import Object, path_of
from gantline.runtime.kubernetes.pods import MARK
from gantline.runtime.spec_file import spec_of

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
    jobs: dict[str, str] = field(default_factory=dict)  # uid -> job; an empty one: its job has ended
    _refused: dict[str, tuple[object, str]] = field(default_factory=dict)  # uid -> what was refused, and why: the same is not tried again
    _asked: set[str] = field(default_factory=set)  # being submitted
    _is_closing: bool = False

    def __post_init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "gantline-intake")
        self.work.written = self.look

    def saw(self, guest: Guest, is_gone: bool = False) -> None:
        """An object was made, has changed or is gone."""
        if is_gone or guest.head.get("deletionTimestamp"):
            self._lose(guest)
        elif self.work.sight.see_guest(guest):
            self.look(guest.uid)

    def look(self, uid: str) -> None:
        """What is to be done about an object now."""
        guest, gang = self.work.sight.guests.get(uid), self.work.gang_of_guest(uid)
        if guest is None:
            return
        wanted = self._marks(guest)
        if any(guest.notes.get(f"{MARK}/{key}") != value for key, value in wanted.items()):
            self._write(guest, guest.mark(**wanted))
        elif gang is not None:
            self.work.settle(gang)
        elif not guest.end[0]:
            self._receive(guest)
        elif job := self.jobs.get(uid):
            self.jobs[uid] = ""
            self._later(partial(self.work.contact.cancel, job))  # it has ended without being admitted

    def _lose(self, guest: Guest) -> None:
        self.work.sight.guests.pop(guest.uid, None)
        self._refused.pop(guest.uid, None)
        if job := self.jobs.pop(guest.uid, ""):
            self._later(partial(self.work.contact.cancel, job))
        if (gang := self.work.gang_of_guest(guest.uid)) is not None:
            self.work.settle(gang)

    def _marks(self, guest: Guest) -> dict[str, str | None]:
        """Annotations that the object shall have."""
        if job := self.jobs.get(guest.uid):
            return {"job": job, "home": self.work.terms.home, "refused": None}
        asks, why = self._refused.get(guest.uid, (None, ""))
        return {"refused": why} if why and asks == guest.asks else {}

    def _receive(self, guest: Guest) -> None:
        """One whose gang does not run: it is held, and submitted once."""
        home, job = guest.notes.get(f"{MARK}/home"), str(guest.notes.get(f"{MARK}/job") or "")
        if not guest.is_suspended or (guest.kind.replicas and not guest.names_us):
            self._write(guest, guest.hold())
        elif guest.uid in self.jobs or guest.uid in self._asked or self._refused.get(guest.uid, (None, ""))[0] == guest.asks:
            return
        elif home == self.work.terms.home and job:
            self.jobs[guest.uid] = job if self.work.contact.row_of(job) is not None else ""
        else:
            self._asked.add(guest.uid)
            self._later(partial(self._submit, guest))

    def _submit(self, guest: Guest) -> None:
        """In the thread of submissions."""
        contact, job, why = self.work.contact, "", ""
        try:
            spec = spec_of_guest(guest, list(self.work.sight.nodes.values()), self.work.slots)
            job = contact.submit(spec_of(spec, guest.name), self.work.terms.namespace, guest.uid)
        except UnreachableError:
            raise
        except GantlineError as error:
            why = str(error)
        self.work.writes.post(partial(self._submitted, guest, job, why))

    def _submitted(self, guest: Guest, job: str, why: str) -> None:
        self._asked.discard(guest.uid)
        if guest.uid not in self.work.sight.guests:  # it was deleted meanwhile
            self._later(partial(self.work.contact.cancel, job))
        elif job:
            self.jobs[guest.uid] = job
        else:
            self._refused[guest.uid] = (guest.asks, why)
        self.look(guest.uid)

    def _write(self, guest: Guest, change: Object) -> None:
        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if answer is not None:
                self.work.sight.see_guest(guest.renewed(answer))
                self.look(guest.uid)

        self.work.writes.begin(guest.title, partial(self.work.client.merge, guest.path, change), done)

    def _later(self, act: Callable[[], None]) -> None:
        """In the thread of submissions, until the scheduler has answered."""

        def again() -> None:
            while not self._is_closing:
                try:
                    act()
                    return
                except UnreachableError:
                    time.sleep(_PAUSE)

        if not self._is_closing:
            self._pool.submit(again)

    def absent(self, kind: GuestKind, uids: set[str], version: int) -> None:
        """A list of that version has only these objects of a kind."""
        for guest in list(self.work.sight.guests.values()):
            if guest.kind == kind and guest.uid not in uids and guest.version <= version:
                self.saw(guest, is_gone=True)

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
