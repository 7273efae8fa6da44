"""Wall time: the same six steps, with a wait in place of a jump.

Inputs and reports come from other threads. Whatever has come is stamped with the time at which the loop takes it up, given to `on_messages`
(which writes it down), and only then enters, exactly as an input of a simulation at that time would. Appointments of the agenda are kept
at the instant that they name, even if the loop is a little late. So what was stamped is complete: folding it again, in virtual time,
gives the same plans, and that is how a loop goes on after a restart (`fold`).
"""

from __future__ import annotations

import heapq
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from gantline.core.columns import Job
from gantline.core.inputs import Input, JobRequest, NodeEvent, Report, Submit
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.stepping import Stepping
from gantline.engine.engine import Engine
from gantline.engine.executor import USUAL, Can, Executor, Order
from gantline.policies.admission.rules import AdmissionRule

# --- messages of other threads, each taken up as soon as it can be or at a given time -----------------------------------
_SOON = 0.5  # seconds after which the queue is checked in any case


class Clock(Protocol):
    """Seconds since some beginning; it never goes back."""

    def now(self) -> float: ...


@dataclass
class Message:
    """What enters together, at one instant; `done` is called with the error if there was one, when it is safe to answer the sender."""

    values: Sequence[Input] = ()
    done: Callable[[BaseException | None], None] = lambda error: None
    open: Callable[[float], tuple[Sequence[Input], Sequence[Any]]] | None = None  # gives values and notes when it is taken up
    alone: bool = False  # its checks must see everything that came before
    must: bool = False  # it has happened: it cannot be refused, only wait until it can be written down
    notes: Sequence[Any] = ()  # whatever else is to be written down with it
    call: Callable[[], None] | None = None  # something to do between two steps, in the thread that owns the engine


class MessageQueue:
    """Messages in the order in which they came. Everything may be called from any thread."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.stopping = False
        self._changed = threading.Condition()
        self._messages: deque[Message] = deque()
        self._timed: list[tuple[float, int, Message]] = []
        self._count = 0
        self._postponed: list[Message] = []  # could not be written down yet
        self._blocked_until = 0.0  # nothing is taken up before

    def post(self, message: Message) -> None:
        """Something has come."""
        with self._changed:
            self._messages.append(message)
            self._changed.notify()

    def post_at(self, time: float, message: Message) -> None:
        """Something to be taken up then."""
        with self._changed:
            self._count += 1
            heapq.heappush(self._timed, (time, self._count, message))
            self._changed.notify()

    def postpone(self, messages: Sequence[Message], seconds: float) -> None:
        """They come first when the queue is open again, which is after so many seconds."""
        self._postponed += messages
        self._blocked_until = self.clock.now() + seconds

    def stop(self) -> None:
        """Nothing is waited for any more."""
        with self._changed:
            self.stopping = True
            self._changed.notify()

    def ring(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self._changed.notify_all()

    def take(self) -> list[Message]:
        """Messages that may enter together."""
        with self._changed:
            now = self.clock.now()
            if now < self._blocked_until:
                return []
            found, self._postponed = self._postponed, []
            while self._timed and self._timed[0][0] <= now:
                found.append(heapq.heappop(self._timed)[2])
            while self._messages and not (found and (self._messages[0].alone or found[-1].alone)):
                found.append(self._messages.popleft())
            return found

    def take_behind(self) -> list[Message]:
        """Messages that may enter while a decision is being made; waits a little where there are none."""
        with self._changed:
            if not self._may_enter_behind() or self.clock.now() < self._blocked_until:
                self._changed.wait(_SOON)
                return []
            found = []
            while self._may_enter_behind():
                found.append(self._messages.popleft())
            return found

    def _may_enter_behind(self) -> bool:
        return bool(self._messages) and not self._messages[0].alone and self._messages[0].call is None

    def wait(self, until: float) -> None:
        """Wait for a message, or until then."""
        with self._changed:
            now = self.clock.now()
            blocked = now < self._blocked_until
            if self.stopping or (self._messages and not blocked):
                return
            timed = self._timed[0][0] if self._timed else math.inf
            left = min(until, self._blocked_until if blocked or self._postponed else timed) - now
            self._changed.wait(None if left == math.inf else max(0.0, min(left, threading.TIMEOUT_MAX)))


# --- the loop -----------------------------------------------------------------------------------------------------------
Script = Iterable[tuple[float, Input]]  # what was received, and when


@dataclass
class Inbox:
    """Stands between the reconciler and an executor: reports are received when they are stamped, not when they come."""

    executor: Executor | None = None  # None: orders are only counted, because what became of them is known
    received: deque[tuple[float, Report]] = field(default_factory=deque)
    able: Callable[[int], frozenset[Can]] = lambda row: USUAL  # the same in a replay and live
    on_order: Callable[[Order], None] = lambda order: None  # before one goes out

    def can(self, row: int) -> frozenset[Can]:
        return self.able(row)

    def send(self, order: Order, now: float) -> None:
        if self.executor is not None:
            self.on_order(order)
            self.executor.send(order, now)

    def next_time(self) -> float:
        return self.received[0][0] if self.received else math.inf

    def receive(self, now: float) -> list[Report]:
        found = []
        while self.received and self.received[0][0] <= now:
            found.append(self.received.popleft()[1])
        return found

    def fail(self, node: int, devices: frozenset[int], now: float) -> None:
        if self.executor is not None:
            self.executor.fail(node, devices, now)


class Live:
    """One run on wall time. `messages` may be used from any thread; everything else belongs to the one that calls `run`."""

    gives_up: ClassVar[bool] = False  # a policy that has lost many turns may answer the next one, or be replaced

    def __init__(self, engine: Engine, admission: AdmissionRule, *, executor: Executor | None, clock: Clock, retry: float = 1.0) -> None:
        self.engine, self.state = engine, engine.state
        self.clock, self.executor = clock, executor
        self.retry = retry  # seconds until what could not be written down is tried again
        self.on_messages: Callable[[float, list[Message]], None] = lambda at, messages: None  # raises OSError: not now
        self.on_idle: Callable[[], None] = lambda: None  # before each wait
        self.messages = MessageQueue(clock)
        self.inbox = Inbox()
        self.stamped = self.state.now  # the last instant that anything was stamped with
        self.folding = False
        self._left_out: list[tuple[Input, Exception]] = []  # inputs of the past that could not be applied
        self._acknowledged = Acknowledged(engine, self.inbox)
        self.reconciler = self._acknowledged.reconciler
        self.reconciler.apply = self._absorb
        self.loop = Stepping(engine, admission, driver=self)
        self.agenda, self.inputs = self.loop.agenda, self.loop.inputs
        engine.preemption_grace.unsaved = self._has_not_saved

    @property
    def is_quiet(self) -> bool:
        """Whether everything that was received has been taken in."""
        return not self.inputs and not self.inbox.received

    def _has_not_saved(self, row: int) -> bool:
        """Whether a job could save while it runs and has not yet reported a save."""
        return Can.SAVE in self.inbox.can(row) and bool(self.state.tables.F[Job.SAFE, row] <= 0.0)

    def run(self) -> None:
        """Run until `messages` are stopped."""
        self.inbox.executor = self.executor
        self.reconciler.orders.clock = self.clock.now
        for live in self.reconciler.live.values():
            live.next_try = self.clock.now()  # what was ordered in the past is ordered again: it is true, or becomes so
        self.loop.run_steps()

    # --- the past -------------------------------------------------------------------------------------------------------
    def fold(self, script: Script, until: float = -math.inf) -> list[tuple[int, Exception]]:
        """Go through what was received before, at least up to `until`; nothing is ordered meanwhile. To be called before `run`.

        An input that cannot be applied (any more) is left out, or one bad line would keep the loop from ever starting again: its place in
        the script and the reason are returned.
        """
        places = {id(entered): place for place, entered in enumerate([self._enter(at, value) for at, value in script])}
        self.stamped = max(self.stamped, until)
        self.folding, self._left_out = True, []
        try:
            self.loop.run_steps()
        finally:
            self.folding = False
        return [(places[id(value)], error) for value, error in self._left_out]

    def has_missed(self, now: float) -> bool:
        """Whether an appointment has passed by now, of a loop that has taken in everything else."""
        return self.is_quiet and self.state.all_arrived and self.agenda.next_look() < now

    def skip_to(self, now: float) -> None:
        """Let time pass without a look: what was missed is decided once, by the next one. To be called between `fold` and `run`."""
        self.state.now = max(self.state.now, now)

    def _enter(self, at: float, value: Input) -> Input:
        self.stamped = max(self.stamped, at)
        if isinstance(value, Report):
            self.inbox.received.append((at, value))
            return value
        self.inputs.append(value if value.time == at else replace(value, time=at))
        return self.inputs[-1]

    def _absorb(self, report: Report) -> bool:
        if not self.folding:
            return self.engine.apply(report)
        try:
            return self.engine.apply(report)
        except Exception as error:
            self._left_out.append((report, error))
            return False

    # --- how time passes ------------------------------------------------------------------------------------------------
    def wait(self, loop: Stepping) -> float:
        while not self.messages.stopping:
            look, event = loop.agenda.next_look(loop.next_input()), self._acknowledged.next_event(loop)
            due, now = min(look, event), math.inf if self.folding else self.clock.now()
            if self.folding and due > self.stamped:
                break
            if due <= now:
                if look <= event:
                    return look
                self._acknowledged.advance(loop, event)
                continue
            repeat = self.reconciler.next_time()  # by the clock, and once, however long nothing ran here; in the past nothing is ordered
            if repeat <= now:
                self.state.now = max(self.state.now, now)
                self.reconciler.catch_up()
            elif messages := self.messages.take():
                self._take_up(messages)
            else:
                self.on_idle()
                self.messages.wait(min(due, repeat))
        return math.inf

    def serve_while(self, busy: Callable[[], bool]) -> None:
        """While a decision is being made elsewhere: take up what may enter behind it, so that no request waits for the policy."""
        while busy():
            if messages := self.messages.take_behind():
                self._take_up(messages)

    def _take_up(self, messages: list[Message]) -> None:
        """Stamp them, have them written down, let them enter."""
        at = max(self.clock.now(), math.nextafter(max(self.stamped, self.state.now), math.inf))
        opened = [found for found in (self._opened(message, at) for message in messages) if found is not None]
        if not opened:
            return
        try:
            self.on_messages(at, opened)
        except OSError as error:
            self._refuse(opened, error)
            return
        for message in opened:
            for value in message.values:
                self._enter(at, value)
            message.done(None)

    def _opened(self, message: Message, at: float) -> Message | None:
        """The message as it enters; None if there is nothing (more) to it."""
        try:
            if message.call is not None:
                message.call()
            if message.open is not None:
                values, notes = message.open(at)
                message = replace(message, values=values, notes=notes, open=None)
            values = [value if isinstance(value, Report) else replace(value, time=at) for value in message.values]
            new = {name for value in values if isinstance(value, Submit) for name in value.names}
            joined = {value.name for value in values if isinstance(value, NodeEvent) and value.kind == "join"}
            for value in values:  # jobs and nodes that come with it are there by then
                if isinstance(value, JobRequest) and new.issuperset(value.jobs):
                    continue
                if not (isinstance(value, NodeEvent) and value.name in joined):
                    self.engine.inputs.check(value)
        except Exception as error:
            message.done(error)
            return None
        if not values and not message.notes:
            message.done(None)
            return None
        return replace(message, values=values)

    def _refuse(self, messages: list[Message], error: OSError) -> None:
        """Users' requests are refused; reports of events cannot be, and wait until they can be written down."""
        for message in messages:
            if not message.must:
                message.done(error)
        self.messages.postpone([message for message in messages if message.must], self.retry)

    # --- what has been acknowledged -------------------------------------------------------------------------------------
    def elapse(self, loop: Stepping, until: float) -> None:
        self._acknowledged.elapse(loop, until)

    def settle(self, loop: Stepping) -> bool:
        return self._acknowledged.settle(loop)

    def follow(self, loop: Stepping) -> None:
        self._acknowledged.follow(loop)

    def take_in(self, loop: Stepping, value: Input) -> None:
        if not self.folding:
            self._acknowledged.take_in(loop, value)
            return
        try:
            self.engine.inputs.check(value)  # first: what is left out must have changed nothing
            self._acknowledged.take_in(loop, value)
        except Exception as error:
            self._left_out.append((value, error))
