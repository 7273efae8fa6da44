"""Carries out orders on this machine: what each means for the incarnation that is there, and what is reported of it.

It trusts no order: one of an older epoch is answered with what is known; a job never runs twice, and a device is never given to two that
are not mates, whatever the orders say. Such an order waits until it may be carried out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from gantline.core.errors import RefusedError
from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.accounts import NoAccountError
from gantline.live.bulletins import Bulletin, Ending, NodeNews
from gantline.live.launch import Launch
from gantline.live.local import switching
from gantline.live.local.fork_server import KeeperForkServer
from gantline.live.local.incarnation import Incarnation
from gantline.live.local.incarnations import Incarnations, Loss
from gantline.live.local.news import report_of
from gantline.live.local.orders import Writer
from gantline.live.local.slice_crashes import SliceCrashes
from gantline.live.local.templates import WarmTemplate
from gantline.live.local.terms import tell_terms
from gantline.live.premises import Contact, Task


class Keepers(Protocol):
    """How keepers begin: on this machine, or through an engine that has others."""

    def begin(self, one: Incarnation, launch: Launch) -> None:
        """Let a keeper begin with the order that the incarnation has. OSError: none can be had."""
        ...

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        """It has just ended: correct what its keeper wrote down, where more is known."""
        ...


@dataclass(frozen=True)
class LocalKeepers:
    """Keepers are forked from a process that has imported what they need, or what their jobs need, too."""

    plain: KeeperForkServer
    crashes: SliceCrashes
    template: WarmTemplate | None = None

    def begin(self, one: Incarnation, launch: Launch) -> None:
        one.begin(self.template if self.template is not None and self.template.suits(launch) else self.plain)

    def judge(self, one: Incarnation, alive: Sequence[Incarnation]) -> None:
        self.crashes.judge(one, alive)


@dataclass
class Execution:
    """Carries out one order at a time, in the runner's thread."""

    home: Path
    contact: Contact
    known: Incarnations
    writer: Writer
    keepers: Keepers
    orders: deque[Order | Loss] = field(default_factory=deque)
    waiting: dict[str, Order] = field(default_factory=dict)  # starts that may not be carried out yet, by job
    join_limit: float = switching.JOIN_LIMIT
    _told: list[tuple[Report, Ending | None]] | None = field(default=None)  # what is to be told together

    @contextmanager
    def together(self, nodes: Iterable[NodeNews]) -> Iterator[None]:
        """What is reported meanwhile is told at once, behind what has become of the nodes."""
        self._told = []
        try:
            yield
        finally:
            told, self._told = self._told, None
            self.contact.tell(Bulletin(tuple(nodes), tuple(told)))

    def begin(self) -> None:
        """Say what has become of incarnations that were adopted; those of jobs that the engine has forgotten end."""
        for one in list(self.known.newest.values()):
            row = self.contact.row_of(one.job)
            one.row = -1 if row is None else row
            if not one.over:
                if row is not None:
                    self.repeat(one)
                elif one.generation == self.known.generation:  # what an earlier life has begun has been told to stop
                    one.write_order(want="stop", grace=0.0)

    def carry_out(self, order: Order | Loss) -> None:
        """Do what an order says, or say what is known where it is older than that."""
        if isinstance(order, Loss):
            self._lose(order)
            return
        task = self.contact.task(order.row)
        known = self.known.get(task.job)
        if known is not None and known.row < 0:
            known.row = order.row
        if known is not None and order.onto == known.epoch < order.epoch:
            if known.over:
                self.repeat(known)  # it has ended before it could go on
                return
            switching.go_on(known, order, task, self.writer)
        if known is not None and order.epoch < known.epoch:
            self.repeat(known)  # fenced off
        elif order.verb is Verb.START:
            if known is not None and order.epoch == known.epoch:
                self._change(known, order)
                self.repeat(known)
                if 0 < order.saves <= known.order.get("saves", 0) and known.saving is None and known.saved is not None and not known.over:
                    self._say(News.SAVED, known)
            else:
                self.start(order)
        elif known is not None and order.epoch == known.epoch:
            self._stop(known, order)
        else:
            self._never(order, task)

    def _lose(self, loss: Loss) -> None:
        """Stop the gangs on lost devices, each by itself; those to whom it cannot be written now hear of it with the next orders."""
        missed: list[Incarnation] = []
        failure: OSError | None = None
        for one in loss.missed or self.known.alive():
            try:
                if one.occupies(loss.devices):
                    one.write_order(want="stop", grace=0.0)
            except OSError as error:
                missed.append(one)
                failure = failure or error
        if missed:
            self.orders.append(Loss(loss.devices, tuple(missed)))
        if failure is not None and not loss.missed:
            raise failure  # said once, however often it is tried again

    def start(self, order: Order) -> None:
        """Start a new incarnation, unless another one is in its way."""
        task = self.contact.task(order.row)
        known = self.known.get(task.job)
        if known is not None and not known.over:
            known.write_order(want="stop")
            self.waiting[task.job] = order
            return
        for one in self.known.alive():
            if one.row not in order.mates and one.occupies(order.devices):
                self.waiting[task.job] = order
                return
        self.waiting.pop(task.job, None)
        one = self._new(task.job, order.epoch, order.row, order.devices)
        one.resumed = order.done if task.launch.resumes else (0.0 if math.isnan(task.saved) else task.saved)
        self.known.enter(one)
        try:
            one.order = self.writer.order(order, task, one) | tell_terms(one, order)
            self.keepers.begin(one, task.launch)
        except NoAccountError as error:  # it was there when the job was submitted
            one.state = {"phase": "over", "cause": "failed", "exit": None, "why": error.what, "hold": "account"}
            self._say(News.FAILED, one)
        except (OSError, RefusedError) as error:  # a full disk, no process to be had
            one.state = {"phase": "over", "cause": "failed", "exit": 126, "why": f"cannot be started: {error}"}
            self._say(News.FAILED, one)

    def _new(self, job: str, epoch: int, row: int, devices: tuple[int, ...] = ()) -> Incarnation:
        return self.known.new(job, epoch, self.home / "jobs" / job / str(epoch), row, devices)

    def _change(self, one: Incarnation, order: Order) -> None:
        """Continue the incarnation as the order says."""
        base = one.order.get("base", 0)  # revisions of a grant count from its beginning
        if one.over or base + order.revision <= one.order.get("revision", 0) or one.order.get("want") == "stop":
            return
        if order.saves > one.order.get("saves", 0):
            one.saving, one.saved_mark = order.done, one.mark()
        part = self.writer.part(order, self.contact.task(order.row))
        one.write_order(revision=base + order.revision, suspended=order.suspended, saves=order.saves, part=part, **tell_terms(one, order))

    def _stop(self, one: Incarnation, order: Order) -> None:
        if one.over or one.order.get("want") == "stop":
            self.repeat(one)
            return
        one.believed = order.done
        one.write_order(want="stop", believed=order.done)

    def _never(self, order: Order, task: Task) -> None:
        """An order to stop an incarnation that never started: it is remembered, so that a late start is refused."""
        self.waiting.pop(task.job, None)
        known = self.known.get(task.job)
        if known is not None and not known.over:
            known.write_order(want="stop")  # an older one is still there: it goes, too
            self.orders.append(order)  # and then this order is repeated
            return
        ghost = self._new(task.job, order.epoch, order.row)
        ghost.resumed = ghost.believed = 0.0 if math.isnan(task.saved) else task.saved
        ghost.close()
        self.known.newest[task.job] = ghost
        self._say(News.STOPPED, ghost)

    def look(self, one: Incarnation) -> None:
        """See what the keeper has written, or that it is gone."""
        news = one.read()
        if not news and one.keeper_gone():
            news = one.abandoned()
        one.hurry()
        if one.switching and not one.over:
            news = switching.look(one, self.join_limit)
            if one.refusal and news:
                self.contact.refused(one.job, len(one.devices), one.refusal)
        if one.saving is not None and one.mark() != one.saved_mark and one.row >= 0:
            one.saved, one.saving = one.saving, None
            self._say(News.SAVED, one)
        if news and one.over:
            self.keepers.judge(one, self.known.alive())
        if news and one.row >= 0:
            self.repeat(one)
        if one.over:
            one.forget()

    def repeat(self, one: Incarnation) -> None:
        """Say what it is."""
        phase, cause = one.state.get("phase"), one.state.get("cause")
        if one.switching and phase != "over":
            return  # nothing to report before it has switched
        if phase in ("running", "suspended"):
            self._say(News.STARTED if phase == "running" else News.SUSPENDED, one)
        elif phase == "over":
            self._say({"finished": News.FINISHED, "stopped": News.STOPPED}.get(str(cause), News.FAILED), one)

    def _say(self, news: News, one: Incarnation) -> None:
        told = report_of(one, news, self.contact.task(one.row).saved, self.contact.clock)
        if self._told is not None:
            self._told.append(told)
        else:
            self.contact.tell(Bulletin(reports=(told,)))
