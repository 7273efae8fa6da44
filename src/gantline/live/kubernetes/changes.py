"""Changes of objects that others change as well: each is made to the version that it was decided from, or not at all.

A change that comes too late (409 Conflict) is not repeated as it is. The object is read again, and what is to be done is decided anew from
what it is now, so that no edit of its owner is overwritten.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from gantline.live.kubernetes.client import ApiClient, ApiError, AwayError
from gantline.live.kubernetes.guests import Guest
from gantline.live.kubernetes.objects import Object
from gantline.live.kubernetes.writes import Done, Writes

_LOG = logging.getLogger("gantline.live")
_GONE, _CONFLICT = 404, 409
_TRIES = 10  # changes in a row that come too late, before its owner is told and each further one waits
_PAUSE = 0.5  # seconds that it waits then
_TOO_OFTEN = (
    f"it has changed {_TRIES} times in a row while it was to be suspended, admitted or let go; this is tried again every {_PAUSE:g} s: "
    "see what else writes to it"
)


@dataclass
class GuestChanges:
    """Of all objects. What is called back is called in the thread that asked."""

    client: ApiClient
    writes: Writes
    saw: Callable[[Guest], None]  # an object as it is now, changed or not: what is to be done is decided from it
    lost: Callable[[Guest], None]  # it is gone
    _late: dict[str, int] = field(default_factory=dict)  # uid -> changes in a row that came too late

    def make(self, guest: Guest, change: Object, refused: Callable[[ApiError], None]) -> None:
        """Change an object, unless a change of it is under way; `refused` is called if it can never be changed like that."""

        def done(answer: Object | None, refusal: ApiError | None) -> None:
            if refusal is not None and refusal.code == _CONFLICT:
                self._look_again(guest)
            elif refusal is not None and refusal.code != _GONE:
                refused(refusal)
            else:
                if "resourceVersion" in change["metadata"]:
                    self._late.pop(guest.uid, None)
                self._now(guest)(answer, refusal)

        self.writes.begin(guest.title, partial(self.client.merge, guest.path, change), done)

    def ask_after(self, guest: Guest) -> None:
        """Read an object, which may be gone, also while a change of it is under way."""
        self.writes.begin(f"{guest.title}?", partial(self._read, guest), self._now(guest))

    def _look_again(self, guest: Guest) -> None:
        """No other change of it is begun meanwhile: it would come too late as well."""
        late = self._late[guest.uid] = self._late.get(guest.uid, 0) + 1
        self.writes.begin(guest.title, partial(self._read if late < _TRIES else self._tell, guest), self._now(guest))

    def _read(self, guest: Guest) -> Object:
        try:
            return self.client.get(guest.path)
        except ApiError as error:
            if error.code == _GONE:
                raise
            raise AwayError(f"{guest.title} cannot be read: {error.what}", where=error.where) from None  # it is asked again

    def _tell(self, guest: Guest) -> Object:
        """Say at the object why it takes so long; the answer is the object as it is now."""
        time.sleep(_PAUSE)
        try:
            return self.client.merge(guest.path, guest.mark(conflict=_TOO_OFTEN))
        except ApiError:
            return self._read(guest)

    def _now(self, guest: Guest) -> Done:
        def done(answer: Object | None, refusal: ApiError | None) -> None:
            now = guest.renewed(answer) if answer is not None else None
            if now is not None and now.uid == guest.uid:
                self.saw(now)
            elif now is not None or (refusal is not None and refusal.code == _GONE):  # another object has its name, or none
                self._late.pop(guest.uid, None)
                self.lost(guest)
            else:
                _LOG.warning("%s could not be read: %s", guest.title, refusal)

        return done
