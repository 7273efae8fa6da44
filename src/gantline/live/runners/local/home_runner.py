"""What runners have in common whose incarnations have a folder in the home: what is known, what is kept, a thread that works."""

from __future__ import annotations

import logging
import os
import select
import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from gantline.engine.executor import Can, Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.execution import Execution
from gantline.live.runners.local.files import write_json
from gantline.live.runners.local.fork_server import KeeperForkServer
from gantline.live.runners.local.incarnation import Incarnations, Loss
from gantline.live.runners.local.output import KeptJobs, KeptOutput
from gantline.live.runners.runner import Runner
from gantline.live.runners.runner_context import Contact
from gantline.live.runners.runner_events import KeptIncarnation, Present

What = TypeVar("What")
_LOG = logging.getLogger("gantline.live")


class HomeRunner(Runner):
    """Derive from it, and say how orders are carried out."""

    able: ClassVar[frozenset[Can]] = frozenset(Can)
    machines: ClassVar[str] = "its machine"  # which jobs are plain processes of
    makes_environments: ClassVar[bool] = False  # on each node, before ranks start there (`Launch.runtime_env`)
    home: Path
    known: Incarnations
    kept: KeptJobs
    _contact: Contact
    _orders: deque[Order | Loss]  # to be carried out, in the thread that does the work

    # --- what it can ----------------------------------------------------------------------------------------------------
    @property
    def abilities(self) -> frozenset[Can]:
        return self.able

    def can(self, row: int) -> frozenset[Can]:
        return self._contact.task(row).launch.can() & self.able

    def refusal(self, launch: Launch) -> str:
        asked = "an image" if launch.image else "mounts" if launch.mounts else ""
        if launch.runtime_env and not self.makes_environments:
            asked = asked or "a runtime environment"
        return f"it asks for {asked}, and jobs of this service are plain processes of {self.machines}" if asked else ""

    def adopt(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
        return self.known.adopt(self.home / "jobs", is_over)

    # --- jobs -----------------------------------------------------------------------------------------------------------
    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """End the incarnations on devices that are declared lost, in the thread that starts them: one may have no folder yet."""
        self._orders.append(Loss(devices))
        self._ring()

    def forget(self, jobs: Iterable[str]) -> None:
        self.known.forget(jobs)

    def is_same_life(self, job: str, epoch: int) -> bool:
        one = self.known.get(job)
        return one is not None and not one.over and one.order.get("want") != "stop" and int(one.folder.name) <= epoch <= one.epoch

    def switched(self, job: str, epoch: int) -> None:
        one = self.known.get(job)
        if one is not None and one.epoch == epoch and one.switching:
            write_json(str(one.folder / "switched"), epoch)
            self._ring()

    def incarnations(self, job: str) -> Sequence[KeptIncarnation]:
        return self.kept.incarnations(job)

    def output(self, job: str, epoch: int) -> KeptOutput:
        return self.kept.output(job, epoch)

    def jobs_kept(self) -> set[str]:
        return self.kept.jobs()

    def remove(self, job: str) -> None:
        self.kept.remove(job)

    # --- the thread -----------------------------------------------------------------------------------------------------
    @abstractmethod
    def _ring(self) -> None:
        """Let the thread look at what is new."""

    def _work_watched(self) -> None:
        try:
            self._work()
        except BaseException as error:  # the thread that watches this one reports it and ends the service
            self.failure = error

    @abstractmethod
    def _work(self) -> None:
        """Carry out orders until the runner is closed."""

    def _try(self, act: Callable[[What], None], what: What) -> None:
        """Carry out one order; a failure must not stop the others, and orders are repeated until they are answered."""
        try:
            act(what)
        except Exception:
            _LOG.exception("while carrying out %s", what)


# What runners have in common whose keepers are processes of this machine: a thread that sleeps until an order comes
# or a keeper ends.

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
