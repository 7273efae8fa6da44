"""What runners have in common whose incarnations have a folder in the home: what is known, what is kept, a thread that works."""

from __future__ import annotations

import hashlib
import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar, TypeVar

from gantline.engine.executor import Can, Order
from gantline.live.launch import Launch
from gantline.live.local.files import write_json
from gantline.live.local.incarnations import Incarnations, Loss
from gantline.live.local.kept import KeptJobs, KeptOutput
from gantline.live.premises import Contact
from gantline.live.roll_call import KeptIncarnation, Present
from gantline.live.runner import Runner

What = TypeVar("What")
_LOG = logging.getLogger("gantline.live")


def home_mark(home: Path) -> str:
    """What tells a home from others where names are shared by all services, such as those of control groups."""
    return hashlib.sha256(str(home).encode()).hexdigest()[:8]


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

    def roll_call(self, is_over: Callable[[str], bool] = lambda job: False) -> Sequence[Present]:
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
