"""What runners have in common whose keepers are processes of this machine: a thread that sleeps until an order comes or a keeper ends."""

from __future__ import annotations

import os
import select
import threading
from collections import deque

from gantline.engine.executor import Order
from gantline.live.local.execution import Execution
from gantline.live.local.fork_server import KeeperForkServer
from gantline.live.local.home_runner import HomeRunner
from gantline.live.local.incarnations import Incarnations

_BUSY, _CALM = 0.02, 1.0  # seconds between checks: while an incarnation starts or stops, and otherwise; exits are noticed at once


class KeeperRunner(HomeRunner):
    """Derive from it, call `_prepare` when it is made and `_begin` when it is attached."""

    fork_server: KeeperForkServer
    _execution: Execution

    def _prepare(self, known: Incarnations, fork_server: KeeperForkServer) -> None:
        self.known, self.fork_server = known, fork_server
        self._orders = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None
        self._closing = False

    def _begin(self, execution: Execution) -> None:
        self._execution = execution
        self._thread = threading.Thread(target=self._work_watched, name="gantline-runner", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def send(self, order: Order, now: float) -> None:
        self._orders.append(order)
        self._ring()

    def close(self) -> None:
        self._closing = True
        self._ring()
        if self._thread is not None:
            self._thread.join()
        os.close(self._bell)
        for one in self.known.newest.values():
            one.forget()
        self.fork_server.close()

    def _ring(self) -> None:
        os.eventfd_write(self._bell, 1)

    # --- the thread -----------------------------------------------------------------------------------------------------
    def _work(self) -> None:
        work = self._execution
        work.begin()
        while True:
            self._wait()
            if self._closing:
                return
            for _ in range(len(self._orders)):
                self._try(work.carry_out, self._orders.popleft())
            self._look()
            for one in self.known.alive():
                self._try(work.look, one)
            for order in list(work.waiting.values()):
                self._try(work.start, order)
            self._look_after()

    def _look(self) -> None:
        """What else is to be seen, before keepers are looked at."""

    def _look_after(self) -> None:
        """What follows from what was seen of them."""

    def _wait(self) -> None:
        """Until an order comes, a keeper ends, or it is time to look what the keepers have written."""
        alive, waiting = self.known.alive(), self._execution.waiting
        busy = waiting or any(one.state.get("phase") != "running" or one.switching or one.saving is not None for one in alive)
        watched = [self._bell, *(one.pidfd for one in alive if one.pidfd >= 0)]
        poll = select.poll()  # not select(), which cannot take file descriptors above 1023
        for number in watched:
            poll.register(number, select.POLLIN)
        found = poll.poll(1000.0 * _BUSY if busy else (1000.0 * _CALM if alive else None))
        if any(number == self._bell for number, _ in found):
            os.eventfd_read(self._bell)
