"""What carries orders out in a simulation, by name: ours, and what installed packages bring (group ``gantline.executors``).

An entry is a function ``make(state, option) -> Executor``: `option` is the text behind the colon of ``faulty:7``, or empty.
Executors of a service are another kind (`gantline.live.runners.registry`): they have machines, and no virtual time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.errors import GantlineError, UsageError
from gantline.core.phases import RUNNING
from gantline.core.rng import stream
from gantline.core.tables import Tables
from gantline.engine.drivers.faulty import Faults, FaultyExecutor, GangIncarnation
from gantline.engine.executor import USUAL, Can, Executor, News, Order, Report, Verb
from gantline.engine.state import State
from gantline.registry import Register


# --- orders that are carried out and reported at once give every number of virtual time ---------------------------------
class ImmediateExecutor:
    """An executor that carries out orders at once and reports at once. Its jobs progress exactly as the tables say."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._alive: Ints = np.full(state.tables.I.shape[1], -1, dtype=np.int64)  # epoch by row
        self._over = self._alive.copy()  # the newest epoch that was stopped
        self._ended: dict[int, Report] = {}  # by row: its end, reported again on request
        self._reports: list[Report] = []

    def can(self, row: int) -> frozenset[Can]:
        return frozenset(Can) - {Can.MOVE}

    def send(self, order: Order, now: float) -> None:
        self._make_room()
        if order.epoch < self._alive[order.row]:  # fenced off
            self._reports.append(Report(News.STARTED, order.row, int(self._alive[order.row]), now, order.done))
        elif order.verb is Verb.START and order.row in self._ended:
            self._reports.append(self._ended[order.row])
        elif order.verb is Verb.START and order.epoch <= self._over[order.row]:  # its stop has come before it
            self._reports.append(Report(News.STOPPED, order.row, order.epoch, now, order.done))
        elif order.verb is Verb.START:
            self._alive[order.row] = order.epoch
            news = News.SUSPENDED if order.suspended else News.STARTED
            self._reports.append(Report(news, order.row, order.epoch, now, order.done, order.devices, revision=order.revision))
            if order.saves:
                self._reports.append(Report(News.SAVED, order.row, order.epoch, now, order.done, order.devices, revision=order.revision))
        else:
            self._alive[order.row] = -1
            self._over[order.row] = max(int(self._over[order.row]), order.epoch)
            self._reports += [Report(news, order.row, order.epoch, now, order.done) for news in (News.SAVED, News.STOPPED)]

    def next_time(self) -> float:
        return self.state.now if self._reports else float(self._ends()[1].min(initial=math.inf))

    def receive(self, now: float) -> list[Report]:
        found, self._reports = self._reports, []
        for row, seen, at in zip(*self._ends()):
            if seen <= now:
                end = Report(News.FINISHED, int(row), int(self._alive[row]), float(at), float(self.state.tables.F[Job.WORK, row]))
                self._ended[int(row)] = end
                found.append(end)
                self._alive[row] = -1
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """The gangs that ran there are known to be gone already."""

    def _make_room(self) -> None:
        """The tables grow when jobs are submitted."""
        short = self.state.tables.I.shape[1] - len(self._alive)
        if short > 0:
            self._alive, self._over = (np.concatenate([each, np.full(short, -1)]) for each in (self._alive, self._over))

    def _ends(self) -> tuple[Ints, Floats, Floats]:
        """Rows that run, when the end of each is seen (when it is due, and done), and when it is."""
        self._make_room()
        F, I, rows = self.state.tables.F, self.state.tables.I, self.state.running_rows
        rows = rows[(I[Job.PHASE][rows] == RUNNING) & (self._alive[rows] == I[Job.EPOCH][rows]) & (F[Job.RATE][rows] > 0.0)]
        at = F[Job.SINCE][rows] + (F[Job.WORK][rows] - F[Job.DONE][rows]) / F[Job.RATE][rows]
        return rows, np.maximum(F[Job.DUE][rows], at), at


# --- a recorded run, folded again ---------------------------------------------------------------------------------------


class ScriptedExecutor:
    """Reports come when they were received: at that time, and after so many orders."""

    def __init__(self, received: Iterable[tuple[float, int, Report]], able: frozenset[Can] = USUAL) -> None:
        self.able = able
        self._received = deque(received)
        self._orders = 0

    def can(self, row: int) -> frozenset[Can]:
        return self.able

    def send(self, order: Order, now: float) -> None:
        self._orders += 1  # whatever comes of it is in the script

    def next_time(self) -> float:
        return self._received[0][0] if self._received else math.inf

    def receive(self, now: float) -> list[Report]:
        found = []
        while self._received and self._received[0][0] <= now and self._received[0][1] <= self._orders:
            found.append(self._received.popleft()[2])
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        """The machines that failed did so then."""


# --- real programs, which take time to stop -----------------------------------------------------------------------------


@dataclass(frozen=True)
class TrueWork:
    """The amount of work of each row, of rows that come later as well."""

    tables: Tables

    def __getitem__(self, row: int) -> float:
        return float(self.tables.F[Job.WORK, row])


Leave = Callable[[int, tuple[int, ...], float], float]  # of a row on these devices, from that instant on
Truth = Callable[[Order], Order]  # the same order with the start and the speed that there really are


@dataclass
class MeasuredExecutor(FaultyExecutor):
    """Starts take what the cost model says (orders carry it), stops what `leave` says.

    With a `truth` gangs do otherwise than orders expect. As live, the scheduler then goes on believing how much of its work a stopped gang
    has done.
    """

    faults: Faults = field(default_factory=lambda: Faults(heartbeat=math.inf))  # no message is lost, so none is repeated
    leave: Leave = lambda row, devices, now: 0.0
    truth: Truth | None = None
    running: dict[int, tuple[int, float, float]] = field(default_factory=dict)
    """By row what runs already when it is made, in a rollout amid a run: its epoch, the work it has done, and since when it goes on."""
    _believed: dict[tuple[int, int], float] = field(default_factory=dict)  # work done, by row and epoch that was ordered to stop

    @classmethod
    def of(cls, state: State) -> MeasuredExecutor:
        """For a run with a performance model that gives the time jobs need to leave."""
        t = state.tables

        def leave(row: int, devices: tuple[int, ...], now: float) -> float:
            if t.performance is None or not devices:
                return 0.0
            kind = t.cluster.nodes[int(t.cluster.device_node[devices[0]])].type
            return float(t.performance.leave(t.ids[row], t.models[t.I[Job.MODEL, row]], kind, len(devices), now))

        def truth(order: Order) -> Order:
            job, model = t.ids[order.row], t.models[t.I[Job.MODEL, order.row]]
            kind = t.cluster.nodes[int(t.cluster.device_node[order.devices[0]])].type
            rate = t.performance.goes(job, model, kind, len(order.devices), order.rate)
            return replace(order, rate=rate, pause=t.performance.takes(job, order.pause))

        does_otherwise = t.performance is not None and t.performance.does_otherwise
        found = cls(TrueWork(t), leave=leave, truth=truth if does_otherwise else None)
        found._saved = {row: float(t.F[Job.SAFE, row]) for row in state.rows.tolist()}
        for row in state.running_rows.tolist():
            found.running[row] = int(t.I[Job.EPOCH, row]), float(t.F[Job.DONE, row]), float(t.F[Job.SINCE, row])
        return found

    def send(self, order: Order, now: float) -> None:
        if self.truth is not None and order.verb is Verb.STOP:
            self._believed[order.row, order.epoch] = order.done
        super().send(self.truth(order) if self.truth is not None and order.verb is Verb.START and order.devices else order, now)

    def _say(self, news: News, inc: GangIncarnation, at: float | None = None, saved: float | None = None) -> None:
        believed = self._believed.get((inc.row, inc.epoch)) if news in (News.SAVED, News.STOPPED) else None
        super()._say(news, inc, at, saved if believed is None else believed)

    def _begin(self, order: Order) -> None:
        super()._begin(order)
        epoch, done, since = self.running.pop(order.row, (-1, 0.0, 0.0))
        if epoch == order.epoch:
            gang = self._alive[order.row]
            gang.base, gang.resumed, gang.runs_from, gang.pause = done, done, since, max(0.0, since - self._now)

    def _saving(self, inc: GangIncarnation) -> float:
        return max(0.0, inc.up + inc.pause - self._now)

    def _leaving(self, inc: GangIncarnation) -> float:
        return self.leave(inc.row, inc.devices, self._now)


# --- by name ------------------------------------------------------------------------------------------------------------
EXECUTORS = Register(
    "executors",
    {
        "instant": ("gantline.engine.drivers.stepping:Virtual", "an order is true at once"),
        "acknowledged": (
            "gantline.engine.drivers.executors:prompt",
            "orders go out and reports come in, without any delay: every number is the same as with 'instant'",
        ),
        "measured": (
            "gantline.engine.drivers.executors:measured",
            "as real programs: stops take the time that the performance model knows of, and --min-run, --grace, --turn spare jobs",
        ),
        "faulty": (
            "gantline.engine.drivers.executors:faulty",
            "faulty:SEED has messages that are late, lost or doubled, and starts and stops that take time",
        ),
    },
    where="--executor",
)
_PARTS = ("can", "send", "next_time", "receive", "fail")


def make_executor(text: str, state: State) -> Executor:
    """The executor that ``NAME`` or ``NAME:OPTION`` means, for the run with this state."""
    name, _, option = text.partition(":")
    make, where = EXECUTORS.load(name), f"--executor {text}"
    try:
        found: Executor = make(state, option)
    except GantlineError:
        raise
    except Exception as error:  # whatever the code of another package raises
        raise UsageError(f"cannot be made: {type(error).__name__}: {error}", where=where) from error
    if missing := [part for part in _PARTS if not hasattr(found, part)]:
        fix = "return what gantline.engine.executor.Executor describes"
        raise UsageError(f"a {type(found).__name__} has no {', '.join(missing)}", where=where, fix=fix)
    return found


def prompt(state: State, option: str) -> Executor:
    """It reports at once."""

    _no_option("acknowledged", option)
    return ImmediateExecutor(state)


def measured(state: State, option: str) -> Executor:
    """Stops take the time that the performance model gives."""

    _no_option("measured", option)
    return MeasuredExecutor.of(state)


def faulty(state: State, option: str) -> Executor:
    """An executor with faults that are drawn from a seed."""
    if not option.isdigit():
        raise UsageError(f"'{option}' is not a seed", where="--executor", fix="write faulty:1")
    return FaultyExecutor(state.tables.F[Job.WORK].copy(), faults_of(int(option)), int(option))


def faults_of(seed: int) -> Faults:
    """The faults of that seed."""
    draw = stream(seed, 0, "world")
    return Faults(
        delay=(0.0, float(draw.choice([0.5, 2.0, 10.0]))),
        loss=float(draw.choice([0.0, 0.05, 0.2])),
        doubled=float(draw.choice([0.0, 0.2])),
        start=(0.0, float(draw.choice([5.0, 30.0]))),
        stop=(0.0, float(draw.choice([5.0, 30.0]))),
        checkpoint=float(draw.choice([60.0, 600.0])),
    )


def _no_option(name: str, option: str) -> None:
    if option:
        raise UsageError(f"'{name}' takes no '{option}'", where="--executor", fix=f"write {name}")
