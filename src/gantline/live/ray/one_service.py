"""At most one service schedules a Ray cluster: an actor of a well-known name holds its lease, and tells others which one that is."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable

from gantline.core.errors import RefusedError
from gantline.live.lease import Lease
from gantline.live.ray.connection import NAMESPACE
from gantline.live.ray.handle import Handle

_NAME = "gantline-service"
_PATIENCE = 5.0  # seconds that the lease's actor has to answer when a service ends
LEASE = 30.0  # seconds of silence after which another service may schedule


class ServiceLease:
    """The actor: it has no devices and outlives services."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.holder, self.words, self.lease = "", "", Lease(LEASE, clock)

    def take(self, home: str, words: str) -> str:
        """Take or prolong the lease; empty: it is held now, else the words of the holder. A home may take its own at any time."""
        if self.holder not in ("", home) and not self.lease.is_over:
            return self.words
        self.holder, self.words = home, words
        self.lease.renew()
        return ""

    def leave(self, home: str) -> None:
        """Give it up."""
        if self.holder == home:
            self.holder = ""


class OneService:
    """A service's side of it."""

    def __init__(self, home_id: str, home: str) -> None:
        import ray

        self._home, self._words = home_id, f"the service of {home} on {socket.gethostname()} (process {os.getpid()})"
        self._left, self._lock = False, threading.Lock()  # a lease that is prolonged after it was given up would be held for a while
        options = {"name": _NAME, "namespace": NAMESPACE, "lifetime": "detached", "num_cpus": 0, "get_if_exists": True}
        self._actor: Handle = ray.remote(ServiceLease).options(**options).remote()

    def take(self) -> None:
        """Take the lease, or be refused with the holder's words."""
        import ray

        holder = ray.get(self._actor.take.remote(self._home, self._words))
        if holder:
            fix = f"stop that one, or wait {LEASE:g} s if it is gone for good"
            raise RefusedError(f"{holder} schedules this Ray cluster already", where="--ray-address", fix=fix)

    def prolong(self) -> None:
        """Say that this service is there; nothing waits for it."""
        with self._lock:
            if not self._left:
                self._actor.take.remote(self._home, self._words)

    def leave(self) -> None:
        """Give it up, for good."""
        import ray

        with self._lock:
            self._left = True
            given_up = self._actor.leave.remote(self._home)
        ray.wait([given_up], timeout=_PATIENCE)  # what is on its way when Ray is shut down would be lost
