"""An executor on virtual time with late, lost or doubled messages and failing machines, all drawn from a seed.

It is strict about reality: it notes every breach of a promise (a device with two incarnations, a job that runs twice) in `breaches`,
which tests demand to be empty. Saved work is kept on the machines: a job resumes from its newest checkpoint, and reports it.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from gantline.core.rng import stream
from gantline.engine.executor import USUAL, Can, News, Order, Report, Verb
from gantline.engine.runs import is_trial


# --- a gang on these machines -------------------------------------------------------------------------------------------
@dataclass(eq=False)
class GangIncarnation:
    """One incarnation of a job on machines, from the order that starts it until its devices are free."""

    row: int
    epoch: int
    devices: tuple[int, ...]
    base: float  # work at `runs_from`
    rate: float
    runs_from: float  # since when it progresses at this rate
    mates: frozenset[int] = frozenset()
    node: int = -1
    pause: float = 0.0  # seconds from its start to its first progress
    revision: int = 0
    saves: int = 0  # how often it was asked to save
    most: float = math.inf  # of its work, so much is kept at its end: in a trial only what there was before
    suspended: bool = False
    up: float = 0.0  # when it was started
    resumed: float = 0.0  # from how much work
    state: str = "starting"  # starting, running, stopping, stopped, finished, failed
    saved: bool = False
    done: float = 0.0  # final work, once it is saved or over
    safe: float = 0.0  # work at the last save before `runs_from`
    ended: float = 0.0
    course: int = 0  # how often its speed has changed: a finish is foreseen for one course
    beats: int = 0  # heartbeats since it ended

    @property
    def alive(self) -> bool:
        return self.state in _ALIVE

    def work(self, now: float, total: float) -> float:
        return min(total, self.base + self.rate * max(0.0, now - self.runs_from))

    def safe_work(self, now: float, total: float, interval: float) -> float:
        """Work that survives: saves are counted from the first progress, one every `interval`."""
        first = self.up + self.pause
        last = first + math.floor((now - first) / interval + 1e-9) * interval if math.isfinite(interval) else -math.inf
        if self.saved or last <= first or last < self.runs_from:
            return self.done if self.saved else self.safe
        return min(total, self.base + self.rate * (last - self.runs_from))

    def news(self) -> News | None:
        """The report about it now."""
        if self.state == "running":
            return News.SUSPENDED if self.suspended else News.STARTED
        if self.state == "stopping":
            return News.SAVED if self.saved else None
        return _AT_THE_END.get(self.state)


_ALIVE = frozenset({"starting", "running", "stopping"})
_AT_THE_END = {"stopped": News.STOPPED, "finished": News.FINISHED, "failed": News.FAILED}


def uses(gang: Order | GangIncarnation, node: int, devices: frozenset[int]) -> bool:
    """Whether a gang, running or about to start, needs that machine."""
    return gang.node == node or not devices.isdisjoint(gang.devices)


# --- faults -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Faults:
    """Which faults occur, how often, and how long things take."""

    delay: tuple[float, float] = (0.0, 0.0)  # of messages, seconds, uniform
    loss: float = 0.0  # chance that a message is lost
    doubled: float = 0.0  # chance that a message arrives twice
    start: tuple[float, float] = (0.0, 0.0)  # seconds to start a gang
    stop: tuple[float, float] = (0.0, 0.0)  # seconds until it has saved, when ordered to stop
    release: tuple[float, float] = (0.0, 0.0)  # seconds from there until its devices are free
    heartbeat: float = 20.0  # how often machines repeat their last reports, all in one message
    checkpoint: float = math.inf  # seconds between saves while running

    def copies(self, rng: np.random.Generator) -> int:
        """How often a message arrives that is sent once."""
        return 0 if rng.random() < self.loss else (2 if rng.random() < self.doubled else 1)

    def arrivals(self, now: float, rng: np.random.Generator) -> list[float]:
        """When the copies of a message arrive."""
        return [now + span(self.delay, rng) for _ in range(self.copies(rng))]


def span(bounds: tuple[float, float], rng: np.random.Generator) -> float:
    """Seconds between the bounds, uniform; nothing is drawn where they are equal."""
    return bounds[0] if bounds[0] == bounds[1] else float(rng.uniform(*bounds))


# --- the executor -------------------------------------------------------------------------------------------------------
_BEATS = 64  # heartbeats for which machines remember to mention what is over


class WorkByRow(Protocol):
    """The amount of work of each row."""

    def __getitem__(self, row: int, /) -> float: ...


@dataclass
class FaultyExecutor:
    """Machines and a network on one virtual clock."""

    work: WorkByRow  # true amounts
    faults: Faults
    seed: int = 0
    able: frozenset[Can] = USUAL  # what it can do to a gang that runs
    breaches: list[str] = field(default_factory=list)
    in_place: Counter[Can] = field(default_factory=Counter)  # how often it did what without a stop

    def __post_init__(self) -> None:
        self._rng = stream(self.seed, 0, "faults")
        self._events: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []  # what happens inside, by time
        self._inbox: list[tuple[float, int, Report]] = []
        self._count = 0
        self._last: dict[int, GangIncarnation] = {}  # by row: the newest
        self._alive: dict[int, GangIncarnation] = {}  # those of them that hold devices
        self._over: dict[int, GangIncarnation] = {}  # those that ended not long ago
        self._holders: dict[int, list[GangIncarnation]] = {}
        self._saved: dict[int, float] = {}
        self._beating = False
        self._now = 0.0

    # --- the executor's interface ---------------------------------------------------------------------------------------
    def can(self, row: int) -> frozenset[Can]:
        return self.able

    def send(self, order: Order, now: float) -> None:
        for at in self.faults.arrivals(now, self._rng):
            self._push(at, self._on_order, order)

    def next_time(self) -> float:
        times = [self._events[0][0]] if self._events else []
        if self._inbox:
            times.append(self._inbox[0][0])
        return min(times, default=math.inf)

    def receive(self, now: float) -> list[Report]:
        while self._events and self._events[0][0] <= now:
            self._now, _, happens, what = heapq.heappop(self._events)
            happens(*what)
        self._now = now
        reports = []
        while self._inbox and self._inbox[0][0] <= now:
            reports.append(heapq.heappop(self._inbox)[2])
        return reports

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """A machine is gone at once. Gangs fall back to their last checkpoint; survivors of a gang on other machines report it."""
        self._now = now
        self._events = [event for event in self._events if not (event[2] == self._on_order and uses(event[3][0], node, devices))]
        heapq.heapify(self._events)  # orders on their way to the machine are lost with it
        for inc in [inc for inc in self._alive.values() if uses(inc, node, devices)]:
            self._end(inc, "failed", self._safe(inc))
            if not set(inc.devices) <= devices:
                self._say(News.FAILED, inc)

    # --- inside ---------------------------------------------------------------------------------------------------------
    def _on_order(self, order: Order) -> None:
        last = self._last.get(order.row)
        if last is not None and order.onto == last.epoch < order.epoch:
            if not last.alive:
                self._repeat(last)  # it has ended before it could go on
                return
            last.epoch, last.revision = order.epoch, -1  # it goes on as this one
            if order.verb is Verb.START and last.state != "stopping":
                self._move(last, order)
        if last is not None and order.epoch < last.epoch:
            self._repeat(last)  # fenced off
        elif order.verb is Verb.START:
            if last is not None and order.epoch == last.epoch:
                self._change(last, order)
                self._repeat(last)
                if 0 < order.saves <= last.saves and last.state == "running":
                    self._say(News.SAVED, last, saved=self._saved.get(last.row, 0.0))
            else:
                self._begin(order)
        elif last is not None and order.epoch == last.epoch:
            if last.state in {"starting", "running"}:
                last.state = "stopping"
                self._push(self._now + self._saving(last), self._on_saved, last)
            else:
                self._repeat(last)
        else:  # ordered to stop a gang that never came: remember it, so that a late start is refused
            saved = self._saved.get(order.row, 0.0)
            ghost = GangIncarnation(order.row, order.epoch, (), saved, 0.0, self._now, state="stopped", done=saved, ended=self._now)
            self._last[order.row] = self._over[order.row] = ghost
            self._say(News.STOPPED, ghost)

    def _saving(self, inc: GangIncarnation) -> float:
        """Seconds until a gang that is ordered to stop has saved."""
        return span(self.faults.stop, self._rng)

    def _leaving(self, inc: GangIncarnation) -> float:
        """Seconds from there until its devices are free."""
        return span(self.faults.release, self._rng)

    def _begin(self, order: Order) -> None:
        base = self._saved.get(order.row, 0.0)  # a job resumes from its newest checkpoint, whatever the order believes
        up = self._now + span(self.faults.start, self._rng)
        inc = GangIncarnation(order.row, order.epoch, order.devices, base, order.rate, up + order.pause, order.mates, order.node)
        inc.pause, inc.revision, inc.up, inc.resumed, inc.safe = order.pause, order.revision, up, base, base
        inc.saves, inc.most = order.saves, base if is_trial(order.grant) else math.inf
        live = self._last.get(order.row)
        if live is not None and live.alive:
            self.breaches.append(f"t={self._now:g}: job {order.row} started as epoch {order.epoch} while epoch {live.epoch} lives")
        self._take(inc, order)
        self._last[order.row] = self._alive[order.row] = inc
        self._over.pop(order.row, None)
        self._push(up, self._on_running, inc)
        if not self._beating:
            self._beating = True
            self._push(self._now + self.faults.heartbeat, self._on_heartbeat)

    def _take(self, inc: GangIncarnation, order: Order) -> None:
        """The gang is on its devices from now on: only its mates may be there as well."""
        for device in order.devices:
            for other in self._holders.get(device, ()):
                if other is inc:
                    continue
                if other.row not in order.mates and order.row not in other.mates:  # orders may overtake each other
                    self.breaches.append(f"t={self._now:g}: device {device} given to {order.row} while {other.row} holds it")
            if inc not in self._holders.setdefault(device, []):
                self._holders[device].append(inc)

    def _move(self, inc: GangIncarnation, order: Order) -> None:
        """It goes on with other devices, or on its own after a rest."""
        now = self._now
        inc.safe = self._safe(inc)
        work = inc.work(now, math.inf)
        for device in inc.devices:
            if device not in order.devices:
                self._holders[device].remove(inc)
        self.in_place[Can.SUSPEND] += inc.suspended
        if set(inc.devices) != set(order.devices):
            self.in_place[Can.MOVE if set(inc.devices).isdisjoint(order.devices) else Can.DEVICES] += 1
        inc.devices, inc.mates, inc.suspended = order.devices, order.mates, False
        self._take(inc, order)
        inc.base, inc.resumed, inc.rate, inc.pause, inc.up, inc.runs_from = work, work, order.rate, order.pause, now, now + order.pause
        if inc.state == "running":
            self._foresee(inc)

    def _change(self, inc: GangIncarnation, order: Order) -> None:
        """It goes on as the order says; an older one that was overtaken changes nothing."""
        if inc.state not in {"starting", "running"} or order.revision <= inc.revision:
            return
        inc.revision, inc.mates = order.revision, order.mates
        if order.saves > inc.saves:
            inc.saves = order.saves
            self._asked_to_save(inc)
        if order.suspended is not inc.suspended:
            self.in_place[Can.SUSPEND] += order.suspended
            inc.safe, inc.base, inc.suspended = self._safe(inc), inc.work(self._now, math.inf), order.suspended
            inc.runs_from = max(self._now, inc.runs_from)
            inc.rate = 0.0 if order.suspended else inc.rate
            inc.course += 1  # a finish that was foreseen does not come while it is paused
            if not order.suspended:
                self._take(inc, order)
        if order.rate != inc.rate and not inc.suspended:
            inc.safe = self._safe(inc)
            inc.base, inc.runs_from, inc.rate = inc.work(self._now, math.inf), max(self._now, inc.runs_from), order.rate
            if inc.state == "running":
                self._foresee(inc)

    def _asked_to_save(self, inc: GangIncarnation) -> None:
        if inc.state == "running":
            self.in_place[Can.SAVE] += 1
            inc.safe = min(inc.most, max(self._safe(inc), inc.work(self._now, float(self.work[inc.row]))))
            self._saved[inc.row] = max(self._saved.get(inc.row, 0.0), inc.safe)

    def _safe(self, inc: GangIncarnation) -> float:
        return min(inc.most, inc.safe_work(self._now, float(self.work[inc.row]), self.faults.checkpoint))

    def _foresee(self, inc: GangIncarnation) -> None:
        """When it will finish at its present speed; whatever was foreseen before is void."""
        inc.course += 1
        if inc.rate > 0.0:
            self._push(inc.runs_from + (float(self.work[inc.row]) - inc.base) / inc.rate, self._on_finished, inc, inc.course)

    def _on_running(self, inc: GangIncarnation) -> None:
        if inc.state == "starting":
            inc.state = "running"
            self._say(News.STARTED, inc)
            self._foresee(inc)

    def _on_finished(self, inc: GangIncarnation, course: int) -> None:
        if inc.state == "running" and inc.course == course:  # else its speed has changed meanwhile
            self._end(inc, "finished", float(self.work[inc.row]))
            self._say(News.FINISHED, inc)

    def _on_saved(self, inc: GangIncarnation) -> None:
        if inc.state == "stopping":
            inc.saved, inc.done = True, min(inc.most, inc.work(self._now, float(self.work[inc.row])))
            self._saved[inc.row] = max(self._saved.get(inc.row, 0.0), inc.done)
            self._say(News.SAVED, inc)
            self._push(self._now + self._leaving(inc), self._on_stopped, inc)

    def _on_stopped(self, inc: GangIncarnation) -> None:
        if inc.state == "stopping":
            self._end(inc, "stopped", inc.done)
            self._say(News.STOPPED, inc)

    def _on_heartbeat(self) -> None:
        """Machines repeat their last reports, which makes up for lost ones.

        All of it travels together, but each line of it can get lost. What is over is repeated after 1, 2, 4, ... beats, and then no more:
        a gang that has not received it by then will ask.
        """
        at = self._now + span(self.faults.delay, self._rng)
        for inc in self._alive.values():
            self._repeat(inc, at)
        for inc in list(self._over.values()):
            inc.beats += 1
            if inc.beats & (inc.beats - 1) == 0:
                self._repeat(inc, at)
            if inc.beats == _BEATS:
                del self._over[inc.row]
        if self._alive or self._inbox:
            self._push(self._now + self.faults.heartbeat, self._on_heartbeat)
        else:
            self._beating = False

    def _end(self, inc: GangIncarnation, state: str, done: float) -> None:
        inc.state, inc.done, inc.ended = state, done, self._now
        if self._alive.get(inc.row) is inc:
            self._over[inc.row] = self._alive.pop(inc.row)
        for device in inc.devices:
            if inc in self._holders.get(device, ()):
                self._holders[device].remove(inc)
        if state in {"stopped", "failed"}:
            self._saved[inc.row] = max(self._saved.get(inc.row, 0.0), done)

    def _repeat(self, inc: GangIncarnation, at: float | None = None) -> None:
        news = inc.news()
        if news is not None:
            self._say(news, inc, at)

    def _say(self, news: News, inc: GangIncarnation, at: float | None = None, saved: float | None = None) -> None:
        """Send a report, or a line of the message that arrives at that instant."""
        runs = news in (News.STARTED, News.SUSPENDED)
        done, when = (inc.resumed, inc.up) if runs else (inc.done if saved is None else saved, inc.ended if inc.ended else self._now)
        where = inc.devices if news in (News.STARTED, News.SAVED, News.SUSPENDED) else ()
        report = Report(news, inc.row, inc.epoch, when, done, where, revision=max(inc.revision, 0))
        for arrival in self.faults.arrivals(self._now, self._rng) if at is None else [at] * self.faults.copies(self._rng):
            self._count += 1
            heapq.heappush(self._inbox, (arrival, self._count, report))

    def _push(self, at: float, happens: Callable[..., None], *what: Any) -> None:
        self._count += 1
        heapq.heappush(self._events, (at, self._count, happens, what))
