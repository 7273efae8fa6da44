"""Carries out orders on this machine: what each means for the incarnation that is there, and what is reported of it.

It trusts no order: one of an older epoch is answered with what is known; a job never runs twice, and a device is never given to two that
are not mates, whatever the orders say. Such an order waits until it may be carried out.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from gantline.core.errors import RefusedError
from gantline.core.inputs import Fault
from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.files import seconds_ago
from gantline.live.runners.local.fork_server import KeeperForkServer, WarmTemplate
from gantline.live.runners.local.incarnation import Incarnation, Incarnations, Loss
from gantline.live.runners.local.orders import Writer, tell_terms
from gantline.live.runners.local.slices import SliceCrashes
from gantline.live.runners.runner_context import Contact, NoAccountError, Task
from gantline.live.runners.runner_events import Ending, NodeNews, RunnerEvents
from gantline.live.wall_time import Clock

_LEAST = 60.0  # seconds that a job has at least to switch, once everything is there for it
JOIN_LIMIT = 600.0  # seconds that newcomers have to make themselves ready


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
    join_limit: float = JOIN_LIMIT
    _pending: list[tuple[Report, Ending | None]] | None = field(default=None)  # what is to be told together

    @contextmanager
    def together(self, nodes: Iterable[NodeNews]) -> Iterator[None]:
        """What is reported meanwhile is told at once, behind what has become of the nodes."""
        self._pending = []
        try:
            yield
        finally:
            reports, self._pending = self._pending, None
            self.contact.tell(RunnerEvents(tuple(nodes), tuple(reports)))

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
            go_on(known, order, task, self.writer)
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
            news = look_at_switch(one, self.join_limit)
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
        report = report_of(one, news, self.contact.task(one.row).saved, self.contact.clock)
        if self._pending is not None:
            self._pending.append(report)
        else:
            self.contact.tell(RunnerEvents(reports=(report,)))


# An incarnation goes on with other devices: what is written for it, how newcomers start, and when the switch is
# complete.
#
# A job with a fixed number of processes reads its new devices from ``grant.json`` and reports when it uses them. In
# a job with a rank per device some ranks stay, in their order, others leave and newcomers join: on CPU slots, which
# are alike, the first ranks stay; a GPU keeps its rank. What has not come about in time is called off where it still
# can be, and else the job is stopped and starts again.


def go_on(one: Incarnation, order: Order, task: Task, writer: Writer) -> None:
    """The incarnation goes on under a new epoch, with other devices or after a rest; it says itself when it has switched."""
    slots = writer.alike
    moved = set(order.devices) != set(one.devices) and not (slots and len(order.devices) == len(one.devices))
    one.epoch, one.resumed, one.refusal = order.epoch, order.done, ""
    if order.verb is Verb.STOP:
        one.write_order(epoch=order.epoch)
        return
    base = one.order.get("revision", 0) + 1
    about: dict[str, object] = {"epoch": order.epoch, "resumed": order.done, "revision": base, "base": base, "suspended": False}
    about |= tell_terms(one, order)
    if set(order.devices) != set(one.devices) and not writer.stays(one, order.devices):
        _stop(one, order, about)
        return
    if not moved:
        one.devices = order.devices
        one.write_order(**about, engine_devices=list(order.devices))
        return
    grant, change = writer.grant(order, order.devices), None
    one.target = order.devices
    if task.launch.processes == 0:
        members, one.target = staying_ranks(one.devices, order.devices, slots)
        if not members:  # no rank with the job's state would be left: after a refusal its devices may differ from the engine's
            _stop(one, order, about)
            return
        change = writer.change(order, task.launch, members, one.target)
        grant = writer.grant(order, one.target) | {"members": list(members), "world": len(one.target)}
    one.switching = time.monotonic()
    one.announce(grant, **about, engine_devices=list(one.target), previous_devices=list(one.devices), change=change)


def _stop(one: Incarnation, order: Order, about: Mapping[str, object]) -> None:
    """It saves and ends, and starts again on its new devices."""
    one.believed = order.done
    one.write_order(**about, want="stop", believed=order.done)


def staying_ranks(old: Sequence[int], new: Sequence[int], alike: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which ranks stay, in their new order, and the device of each rank then."""
    if alike:
        return tuple(range(min(len(old), len(new)))), tuple(new)
    members = tuple(rank for rank, device in enumerate(old) if device in new)
    return members, (*(old[rank] for rank in members), *(device for device in new if device not in old))


def look_at_switch(one: Incarnation, join_limit: float) -> bool:
    """Whether it has just switched; one that does not in time goes on as it was, or is stopped and starts again on its new devices."""
    if one.has_switched:
        refused = one.state.get("refused") or {}
        if refused.get("epoch") == one.epoch:
            one.refusal = str(refused.get("why"))
        else:
            one.devices = one.target
        one.switching = 0.0
        return True
    one.look_again()
    change, waited = one.order.get("change"), time.monotonic() - one.switching
    if change and change["epoch"] == one.epoch and not change.get("refuse"):
        if not one.decided():
            if waited > join_limit:
                one.switching = time.monotonic()
                one.write_order(change={**change, "refuse": f"its new ranks were not ready within {join_limit:g} s"})
            return False
        if "decided" not in change:
            one.switching = time.monotonic()  # from now on it is a matter of steps
            one.write_order(change={**change, "decided": True})
            return False
    if waited > max(_LEAST, 2.0 * float(one.order.get("grace", 10.0))):
        one.switching = 0.0
        one.write_order(want="stop", believed=one.resumed)
    return False


# What the runner reports of an incarnation: the engine's input, and how the incarnation ended.


def _when(state: Mapping[str, Any], name: str, clock: Clock, now: float) -> float:
    """When the keeper says that it was; a wall clock that was set since then does not matter."""
    wall = state.get(name)
    if wall is None or not hasattr(clock, "at"):
        return now
    ago = seconds_ago(state, name)
    return clock.at(float(wall)) if ago is None else max(0.0, now - ago)


def report_of(one: Incarnation, news: News, saved: float, clock: Clock) -> tuple[Report, Ending | None]:
    """The report, and how it ended if it has; `saved` is the work that the job has reported as saved (NaN: it does not report it)."""
    done, where = one.resumed, one.devices if not one.over else ()
    if news is News.SAVED and one.saved is not None:
        done = one.saved
    if news is News.STOPPED and one.order.get("resumes") and not one.state.get("forced"):
        done = one.believed
    elif news in (News.STOPPED, News.FAILED):
        done = saved if not math.isnan(saved) else (one.resumed if one.order.get("resumes") else 0.0)
    now = clock.now()
    at = _when(one.state, "started" if news is News.STARTED else "ended", clock, now)
    revision = max(0, int(one.state.get("revision", 0)) - int(one.order.get("base", 0)))
    lost = Fault(one.state["fault"]) if one.over and one.state.get("fault") else None
    picked = tuple(one.state.get("actual", ())) if where else ()
    report = Report(news, one.row, one.epoch, now if news is News.SAVED else at, done, where, revision=revision, lost=lost, actual=picked)
    if not one.over:
        return report, None
    lines = tuple(one.last_lines()) if news is News.FAILED else ()
    return report, Ending(
        one.state.get("exit"), str(one.state.get("why", "")), lines, bool(one.state.get("forced")), hold=str(one.state.get("hold", ""))
    )
