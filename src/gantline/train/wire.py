"""The connection to the service: a thread sends reports and receives answers, so that training never waits.

Reports are merged until they are sent, the newest value of a field wins. A service that is away costs a failed
connection now and then, ever less often; what could not be sent is sent when it is back.
"""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib import error, request

_TIMEOUT = 5.0  # seconds that one request may take
_SLOWEST = 30.0  # seconds between attempts at most while the service is away
_RELAXED = 5.0  # seconds between reports at most while it answers: an order may take that long to arrive
_LONGEST_ANSWER = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """The service's last answer."""

    stop: bool = False
    save: bool = False
    lease: float = 0.0  # seconds until the next report is due; 0: not given
    gpus: int | None = None
    batch: int | None = None
    epoch: int | None = None

    @classmethod
    def of(cls, body: Any, own_epoch: int) -> Answer:
        """An answer from its JSON; missing or invalid values count as not given."""
        found: Mapping[str, Any] = body if isinstance(body, dict) else {}
        epoch = _whole(found.get("epoch"))
        lease = found.get("lease")
        return cls(
            stop=found.get("stop") is True or (epoch is not None and epoch > own_epoch),
            save=found.get("save") is True,
            lease=float(lease) if isinstance(lease, (int, float)) and not isinstance(lease, bool) and 0 < lease < 1e9 else 0.0,
            gpus=_whole(found.get("gpus")),
            batch=_whole(found.get("batch")),
            epoch=epoch,
        )


class Wire:
    """One job's connection to the service."""

    def __init__(self, url: str, token: str, job: str, epoch: int, *, interval: float = 1.0) -> None:
        self._address = f"{url}/v1/jobs/{job}/progress"
        self._token, self._epoch, self._interval = token, epoch, interval
        trusted = os.environ.get(
            "GANTLINE_CA", ""
        )  # the service's own certificate: a file, or its text where the job does not see the file
        text = trusted if trusted.startswith("-----BEGIN") else None
        trust = ssl.create_default_context(cafile=None if text else trusted, cadata=text) if trusted else None
        secure = [request.HTTPSHandler(context=trust)] if trust is not None else []
        self._open = request.build_opener(request.ProxyHandler({}), *secure).open  # the service is near: no proxy stands between
        self._changed = threading.Condition()
        self._pending: dict[str, Any] = {}
        self._urgent = False
        self._sent = self._acknowledged = 0  # numbers of the newest report given and of the newest one acknowledged
        self._saves = 0  # checkpoints made: the answer to a report from before the last one makes no new request
        self._wanted_save = False
        self._closed = False
        self.answer = Answer()
        self.failures = 0
        self._thread = threading.Thread(target=self._talk, name="gantline-progress", daemon=True)
        self._thread.start()

    def report(self, fields: Mapping[str, Any], *, urgent: bool = False) -> None:
        """Report fields with the next message, or at once."""
        with self._changed:
            self._pending.update(fields)
            self._sent += 1
            self._urgent |= urgent
            if urgent:
                self._changed.notify_all()

    def go_on(self, epoch: int) -> None:
        """Report for a later epoch from now on, beginning at once."""
        with self._changed:
            self._epoch = epoch
            self._urgent = True
            self._sent += 1
            self._changed.notify_all()

    def saved(self) -> None:
        """A checkpoint was made: an older request for one is fulfilled."""
        with self._changed:
            self._saves += 1
            self._wanted_save = False

    @property
    def wants_save(self) -> bool:
        """Whether the service asked for a checkpoint that was not made since."""
        return self._wanted_save

    def flush(self, seconds: float) -> bool:
        """Wait until everything was sent, or for so many seconds; not at all while the service is away."""
        with self._changed:
            if self.failures:
                return False
            self._urgent = bool(self._pending)
            self._changed.notify_all()
            wanted = self._sent
            return (
                self._changed.wait_for(lambda: self._acknowledged >= wanted or self._closed or self.failures > 0, timeout=seconds)
                and self._acknowledged >= wanted
            )

    def close(self) -> None:
        """End the thread; what was not sent is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(timeout=_TIMEOUT + 1.0)

    def _talk(self) -> None:
        pause = 0.0
        while True:
            with self._changed:
                # while the service is away not even what is urgent cuts a pause short
                self._changed.wait_for(lambda: self._closed or (self._urgent and not self.failures), timeout=pause)
                if self._closed:
                    return
                body, number, saves = self._pending, self._sent, self._saves
                self._pending, self._urgent = {}, False
            answer = self._post(body)
            with self._changed:
                if answer is None:
                    self._pending = {**body, **self._pending}
                    self.failures += 1
                    pause = min(self._interval * 2 ** min(self.failures, 10), _SLOWEST)
                    self._changed.notify_all()
                    continue
                self.failures = 0
                self._acknowledged = number
                self._wanted_save = answer.save and saves == self._saves
                self.answer = answer
                pause = min(max(self._interval, answer.lease / 12.0), _RELAXED)
                self._changed.notify_all()

    def _post(self, fields: Mapping[str, Any]) -> Answer | None:
        """Make one request; None if it failed."""
        body = json.dumps({"epoch": self._epoch, **fields}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._token}"}
        try:
            with self._open(request.Request(self._address, body, headers, method="POST"), timeout=_TIMEOUT) as reply:
                return Answer.of(json.loads(reply.read(_LONGEST_ANSWER)), self._epoch)
        except error.HTTPError as refused:
            with contextlib.suppress(OSError):
                refused.close()
            # a report that the service will never take is dropped, or it would hold up all that follow
            return replace(self.answer, save=False) if 400 <= refused.code < 500 and refused.code not in (408, 409, 425, 429) else None
        except (OSError, ValueError):
            return None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
