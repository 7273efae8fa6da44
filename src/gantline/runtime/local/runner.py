"""This machine as an executor: it starts, stops and watches keepers, and reports what becomes of them.

Orders are carried out by a thread of its own, which also watches. It trusts no order: one of an older epoch is answered with what is
known; a job never runs twice, and a device is never given to two that are not mates, whatever the orders say. Such an order waits until it
may be carried out.
"""

from __future__ import annotations

import logging
import math
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError
from gantline.drivers.message_queue import Clock
from gantline.engine.executor import Can, News, Order, Report, Verb
from gantline.runtime.local import switching
from gantline.runtime.local.accounts import Accounts
from gantline.runtime.local.capacity import with_capacity
from gantline.runtime.local.closing import Closing
from gantline.runtime.local.devices import Machine, find_machine
from gantline.runtime.local.files import write_json
from gantline.runtime.local.fork_server import KeeperForkServer
from gantline.runtime.local.incarnation import Incarnation
from gantline.runtime.local.limits import find_groups
from gantline.runtime.local.mps import Mps
from gantline.runtime.local.news import Ending, report_of
from gantline.runtime.local.orders import Task, Writer
from gantline.runtime.local.slice_crashes import SliceCrashes
from gantline.runtime.local.slices import check_slices
from gantline.runtime.local.templates import WarmTemplate
from gantline.runtime.local.terms import tell_terms
from gantline.runtime.local.time_slices import let_take_turns

_LOG = logging.getLogger("gantline.runtime")
_BUSY, _CALM = 0.02, 1.0  # seconds between checks: while an incarnation starts or stops, and otherwise; exits are noticed at once


@dataclass
class LocalRunner:
    """An executor for one machine. `attach` before the first order."""

    home: Path
    devices: str | None = None
    url: str = ""  # of the service, for jobs that report
    preload: tuple[str, ...] = ()  # modules that a template imports for jobs

    def __post_init__(self) -> None:
        self.home = Path(self.home).absolute()
        self.machine: Machine = with_capacity(find_machine(self.devices))
        check_slices(self.machine)
        self.groups, self.mps = find_groups(), Mps(self.home)
        self.accounts, self.closing, self.fork_server = Accounts(), Closing(), KeeperForkServer()
        self._known: dict[str, Incarnation] = {}  # by job: the newest
        self._live: dict[str, Incarnation] = {}  # those of them that were not over when we last looked
        self._orders: deque[Order] = deque()
        self._waiting: dict[str, Order] = {}  # starts that may not be carried out yet
        self._received: deque[Report] = deque()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread: threading.Thread | None = None
        self._closing = False
        self.join_limit = switching.JOIN_LIMIT
        self.template: WarmTemplate | None = None

    @property
    def cluster(self) -> Cluster:
        """The machine as the engine sees it."""
        return self.machine.cluster

    def attach(
        self,
        about: Callable[[int], Task],
        row_of: Callable[[str], int | None],
        clock: Clock,
        report: Callable[[Report, Ending | None], None] | None = None,
        cluster: Callable[[], Cluster] | None = None,
        refused: Callable[[str, int, str], None] = lambda job, gpus, why: None,
    ) -> None:
        """Begin work with the names of rows, the clock and the receiver of reports (without one, `receive` returns them).

        `refused` is called for a job that goes on with the devices that it had though it was given others, with the reason.
        """
        self._about, self._row_of, self._clock, self._report_to, self._refused = about, row_of, clock, report, refused
        self.writer = Writer(
            self.home, self.url, self.machine, self.groups, self.mps, cluster or (lambda: self.machine.cluster), self.accounts, self.closing
        )
        if self.preload:
            self.template = WarmTemplate(self.preload, self.fork_server)
            self.template.warm_up()
        self.mps.several_users, self._crashes = self.accounts.apart, SliceCrashes(self.mps, self.writer.slices)
        self._thread = threading.Thread(target=self._work_watched, name="gantline-runner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop watching; jobs go on."""
        self._closing = True
        os.eventfd_write(self._bell, 1)
        if self._thread is not None:
            self._thread.join()
        os.close(self._bell)
        for one in self._known.values():
            one.forget()
        self.fork_server.close()
        if self.template is not None:
            self.template.close()

    # --- the executor's interface ---------------------------------------------------------------------------------------
    def can(self, row: int) -> frozenset[Can]:
        return self._about(row).launch.can(not self.machine.binds)

    def send(self, order: Order, now: float) -> None:
        self._orders.append(order)
        os.eventfd_write(self._bell, 1)

    def next_time(self) -> float:
        return self._clock.now() if self._received else math.inf

    def receive(self, now: float) -> list[Report]:
        found = []
        while self._received:
            found.append(self._received.popleft())
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """End the incarnations on devices that are declared lost."""
        for one in list(self._live.values()):
            if one.occupies(devices):
                one.write_order(want="stop", grace=0.0)

    # --- after a restart ------------------------------------------------------------------------------------------------
    def roll_call(self, is_over: Callable[[str], bool] = lambda job: False) -> list[Incarnation]:
        """The incarnations that have a folder, the newest epoch of each job; those that still run are adopted. Call it before `attach`.

        Jobs that are known to be over are passed over: of a hundred thousand folders only a few are read.
        """
        for folder in sorted(one for one in (self.home / "jobs").glob("*") if not is_over(one.name)):
            epochs = sorted((int(one.name) for one in folder.iterdir() if one.name.isdigit()), reverse=True) if folder.is_dir() else []
            for place, epoch in enumerate(epochs):
                one = Incarnation(folder.name, epoch, folder / str(epoch))
                alive = one.adopt()
                if place == 0:
                    self._enter(one)
                elif alive:  # an older one beside a newer one: its time is over
                    one.write_order(want="stop", grace=0.0)
        return list(self._known.values())

    def forget(self, jobs: Iterable[str]) -> None:
        """Forget jobs that are over and will get no more orders; from any thread."""
        for job in jobs:
            self._known.pop(job, None)

    # --- inside ---------------------------------------------------------------------------------------------------------
    @property
    def alive(self) -> bool:
        """Whether orders are carried out and jobs watched."""
        return self._thread is not None and self._thread.is_alive()

    def _work_watched(self) -> None:
        try:
            self._work()
        except BaseException as error:  # the thread that watches this one reports it and ends the service
            self.failure = error

    failure: BaseException | None = None

    def _work(self) -> None:
        for one in list(self._known.values()):
            row = self._row_of(one.job)
            one.row = -1 if row is None else row
            if not one.over:
                if row is None:  # the engine has forgotten this job
                    one.write_order(want="stop", grace=0.0)
                else:
                    self._repeat(one)
        while True:
            self._wait()
            if self._closing:
                return
            for _ in range(len(self._orders)):
                self._try(self._carry_out, self._orders.popleft())
            for one in self._alive():
                self._try(self._look, one)
            for order in list(self._waiting.values()):
                self._try(self._start, order)
            self._try(self._crashes.look, self._alive())
            let_take_turns(self._alive())

    def _enter(self, one: Incarnation) -> None:
        self._known[one.job] = self._live[one.job] = one

    def _alive(self) -> list[Incarnation]:
        """Those that are not over: a machine that has run a hundred thousand jobs looks at the few that run."""
        for job in [job for job, one in self._live.items() if one.over]:
            del self._live[job]
        return list(self._live.values())

    def _try(self, act: Callable[[Any], None], what: Any) -> None:
        """Carry out one order; a failure must not stop the others, and orders are repeated until they are answered."""
        try:
            act(what)
        except Exception:
            _LOG.exception("while carrying out %s", what)

    def _wait(self) -> None:
        """Until an order comes, a keeper ends, or it is time to look what the keepers have written."""
        alive = self._alive()
        busy = self._waiting or any(one.state.get("phase") != "running" or one.switching or one.saving is not None for one in alive)
        watched = [self._bell, *(one.pidfd for one in alive if one.pidfd >= 0)]
        poll = select.poll()  # not select(), which cannot take file descriptors above 1023
        for number in watched:
            poll.register(number, select.POLLIN)
        found = poll.poll(1000.0 * _BUSY if busy else (1000.0 * _CALM if alive else None))
        if any(number == self._bell for number, _ in found):
            os.eventfd_read(self._bell)

    def _carry_out(self, order: Order) -> None:
        task = self._about(order.row)
        known = self._known.get(task.job)
        if known is not None and known.row < 0:
            known.row = order.row
        if known is not None and order.onto == known.epoch < order.epoch:
            if known.over:
                self._repeat(known)  # it has ended before it could go on
                return
            switching.go_on(known, order, task, self.writer)
        if known is not None and order.epoch < known.epoch:
            self._repeat(known)  # fenced off
        elif order.verb is Verb.START:
            if known is not None and order.epoch == known.epoch:
                self._change(known, order)
                self._repeat(known)
                if 0 < order.saves <= known.order.get("saves", 0) and known.saving is None and known.saved is not None and not known.over:
                    self._say(News.SAVED, known)
            else:
                self._start(order)
        elif known is not None and order.epoch == known.epoch:
            self._stop(known, order)
        else:
            self._never(order, task)

    def _start(self, order: Order) -> None:
        """Start a new incarnation, unless another one is in its way."""
        task = self._about(order.row)
        known = self._known.get(task.job)
        if known is not None and not known.over:
            known.write_order(want="stop")
            self._waiting[task.job] = order
            return
        for one in self._alive():
            if one.row not in order.mates and one.occupies(order.devices):
                self._waiting[task.job] = order
                return
        self._waiting.pop(task.job, None)
        folder = self.home / "jobs" / task.job / str(order.epoch)
        one = Incarnation(task.job, order.epoch, folder, order.row, order.devices)
        one.resumed = order.done if task.launch.resumes else (0.0 if math.isnan(task.saved) else task.saved)
        self._enter(one)
        try:
            one.order = self.writer.order(order, task, one) | tell_terms(one, order)
            one.begin(self.template if self.template is not None and self.template.suits(task.launch) else self.fork_server)
        except (OSError, RefusedError) as error:  # a full disk, no process to be had, an account that is gone
            one.state = {"phase": "over", "cause": "failed", "exit": 126, "why": f"cannot be started: {error}"}
            self._say(News.FAILED, one)

    def _change(self, one: Incarnation, order: Order) -> None:
        """Continue the incarnation as the order says."""
        base = one.order.get("base", 0)  # revisions of a grant count from its beginning
        if one.over or base + order.revision <= one.order.get("revision", 0) or one.order.get("want") == "stop":
            return
        if order.saves > one.order.get("saves", 0):
            one.saving, one.saved_mark = order.done, one.mark()
        part = self.writer.part(order, self._about(order.row))
        one.write_order(revision=base + order.revision, suspended=order.suspended, saves=order.saves, part=part, **tell_terms(one, order))

    def switched(self, job: str, epoch: int) -> None:
        """The job says that it goes on as this epoch; from any thread."""
        one = self._known.get(job)
        if one is not None and one.epoch == epoch and one.switching:
            write_json(str(one.folder / "switched"), epoch)
            os.eventfd_write(self._bell, 1)

    def is_same_life(self, job: str, epoch: int) -> bool:
        """Whether an epoch is an earlier one of the incarnation that runs, and shall; from any thread."""
        one = self._known.get(job)
        return one is not None and not one.over and one.order.get("want") != "stop" and int(one.folder.name) <= epoch <= one.epoch

    def _stop(self, one: Incarnation, order: Order) -> None:
        if one.over or one.order.get("want") == "stop":
            self._repeat(one)
            return
        one.believed = order.done
        one.write_order(want="stop", believed=order.done)

    def _never(self, order: Order, task: Task) -> None:
        """An order to stop an incarnation that never started: it is remembered, so that a late start is refused."""
        self._waiting.pop(task.job, None)
        known = self._known.get(task.job)
        if known is not None and not known.over:
            known.write_order(want="stop")  # an older one is still there: it goes, too
            self._orders.append(order)  # and then this order is repeated
            return
        ghost = Incarnation(task.job, order.epoch, self.home / "jobs" / task.job / str(order.epoch), order.row)
        ghost.resumed = ghost.believed = 0.0 if math.isnan(task.saved) else task.saved
        ghost.close()
        self._known[task.job] = ghost
        self._say(News.STOPPED, ghost)

    def _look(self, one: Incarnation) -> None:
        """See what the keeper has written, or that it is gone."""
        news = one.read()
        if not news and one.keeper_gone():
            news = one.abandoned()
        one.hurry()
        if one.switching and not one.over:
            news = switching.look(one, self.join_limit)
            if one.refusal and news:
                self._refused(one.job, len(one.devices), one.refusal)
        if one.saving is not None and one.mark() != one.saved_mark and one.row >= 0:
            one.saved, one.saving = one.saving, None
            self._say(News.SAVED, one)
        if news and one.over:
            self._crashes.judge(one, self._alive())
        if news and one.row >= 0:
            self._repeat(one)
        if one.over:
            one.forget()

    def _repeat(self, one: Incarnation) -> None:
        phase, cause = one.state.get("phase"), one.state.get("cause")
        if one.switching and phase != "over":
            return  # nothing to report before it has switched
        if phase in ("running", "suspended"):
            self._say(News.STARTED if phase == "running" else News.SUSPENDED, one)
        elif phase == "over":
            self._say({"finished": News.FINISHED, "stopped": News.STOPPED}.get(str(cause), News.FAILED), one)

    def _say(self, news: News, one: Incarnation) -> None:
        report, ending = report_of(one, news, self._about(one.row).saved, self._clock)
        if self._report_to is not None:
            self._report_to(report, ending)
        else:
            self._received.append(report)
