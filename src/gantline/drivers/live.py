"""The loop on wall time: the same six steps, with a wait in place of a jump.

Inputs and reports come from other threads. Whatever has come is stamped with the time at which the loop takes it up, told to `on_mail` (who
writes it down), and only then enters, exactly as an input of a simulation at that time would. Appointments of the agenda are kept at the
instant that they name, even if the loop is a little late. So what was stamped is all there is to know: folding it again, in virtual time,
gives the same plans, and that is how a loop goes on after a restart (`script`).
"""

from __future__ import annotations

import heapq
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gantline.core import columns as c
from gantline.core.inputs import Input, JobRequest, Report, Submit
from gantline.drivers.acknowledged import Acknowledged
from gantline.engine.executor import Can, Executor, Order

_SOON = 0.5  # seconds after which one looks again, come what may
Script = Iterable[tuple[float, Input]]  # what was received, and when


class Clock(Protocol):
    """Seconds since some beginning; it never goes back."""

    def now(self) -> float: ...


@dataclass
class Message:
    """What enters together, at one instant; `done` is called with the error if there was one, when it is safe to tell whoever sent it."""

    values: Sequence[Input] = ()
    done: Callable[[BaseException | None], None] = lambda error: None
    open: Callable[[float], tuple[Sequence[Input], Sequence[Any]]] | None = None  # says values and notes when it is taken up
    alone: bool = False  # its checks must see everything that came before
    must: bool = False  # it has happened: it cannot be refused, only wait until it can be written down
    notes: Sequence[Any] = ()  # whatever else is to be written down with it
    call: Callable[[], None] | None = None  # something to do between two steps, in the thread that owns the engine


@dataclass
class Inbox:
    """Stands between the reconciler and an executor: reports are received when they are stamped, not when they come."""

    executor: Executor | None = None  # None: orders are only counted, because what became of them is known
    received: deque[tuple[float, Report]] = field(default_factory=deque)
    able: Callable[[int], frozenset[Can]] = lambda row: frozenset({Can.SHARE, Can.BATCH})  # in the past and now: the same answer

    def can(self, row: int) -> frozenset[Can]:
        return self.able(row)

    def send(self, order: Order, now: float) -> None:
        if self.executor is not None:
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


@dataclass
class Live(Acknowledged):
    """One run on wall time. `post` may be called from any thread; everything else belongs to the one that calls `run`."""

    clock: Clock = field(kw_only=True)
    on_mail: Callable[[float, list[Message]], None] = field(default=lambda at, messages: None, kw_only=True)  # raises OSError: not now
    on_idle: Callable[[], None] = field(default=lambda: None, kw_only=True)  # before each wait
    retry: float = field(default=1.0, kw_only=True)  # seconds until what could not be written down is tried again

    def __post_init__(self) -> None:
        self.inbox = Inbox()
        self.runner, self.executor = self.executor, self.inbox
        super().__post_init__()
        self.events: list[Input] = list(self.node_events)
        self.node_events = self.events  # type: ignore[assignment]  # it grows
        self._mail: deque[Message] = deque()
        self._bell = threading.Condition()
        self._stopping = False
        self._late: list[Message] = []  # could not be written down yet
        self._again = 0.0  # when that is tried again
        self._alarms: list[tuple[float, int, Message]] = []
        self._count = 0
        self._left_out: list[tuple[Input, Exception]] = []  # inputs of the past that could not be applied
        self.reconciler.apply = self._absorb
        self.engine.sparing.unsaved = self._has_not_saved
        self.stamped = self.state.now

    # --- from any thread ------------------------------------------------------------------------------------------------
    def post(self, message: Message) -> None:
        """Something has come."""
        with self._bell:
            self._mail.append(message)
            self._bell.notify()

    def post_at(self, time: float, message: Message) -> None:
        """Something to be taken up then."""
        with self._bell:
            self._count += 1
            heapq.heappush(self._alarms, (time, self._count, message))
            self._bell.notify()

    def stop(self) -> None:
        """Come to an end before the next step."""
        with self._bell:
            self._stopping = True
            self._bell.notify()

    def _has_not_saved(self, row: int) -> bool:
        """Whether a job could save while it runs and has not said yet that it did."""
        return Can.SAVE in self.inbox.can(row) and bool(self.state.tables.F[c.SAFE, row] <= 0.0)

    # --- the past -------------------------------------------------------------------------------------------------------
    def fold(self, script: Script, until: float = -math.inf) -> list[tuple[int, Exception]]:
        """Go through what was received before, at least up to `until`; nothing is ordered meanwhile. To be called before `run`.

        An input that cannot be applied (any more) is left out, or one bad line would keep the loop from ever starting again: its place in
        the script and the reason come back.
        """
        places = {id(entered): place for place, entered in enumerate([self._enter(at, value) for at, value in script])}
        self.stamped = max(self.stamped, until)
        self.folding, self._left_out = True, []
        try:
            self._run_steps()
        finally:
            self.folding = False
        return [(places[id(value)], error) for value, error in self._left_out]

    folding = False

    def _enter(self, at: float, value: Input) -> Input:
        self.stamped = max(self.stamped, at)
        if isinstance(value, Report):
            self.inbox.received.append((at, value))
            return value
        self.events.append(value if value.time == at else replace(value, time=at))
        return self.events[-1]

    def _apply(self, value: Input) -> None:
        if not self.folding:
            super()._apply(value)
            return
        try:
            self.engine.inputs.check(value)  # first: what is left out must have changed nothing
            super()._apply(value)
        except Exception as error:
            self._left_out.append((value, error))

    def _absorb(self, report: Report) -> bool:
        if not self.folding:
            return self.engine.apply(report)
        try:
            return self.engine.apply(report)
        except Exception as error:
            self._left_out.append((report, error))
            return False

    # --- how time passes ------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """Run until `stop` is called."""
        self.inbox.executor = self.runner
        self.reconciler.orders.clock = self.clock.now
        for live in self.reconciler.live.values():
            live.next_try = self.clock.now()  # what was ordered in the past is ordered again: it is true, or becomes so
        self._run_steps()

    def _wait(self) -> float:
        while not self._stopping:
            look, news = self.agenda.next_look(self._next_event()), self._next_news()
            due, now = min(look, news), math.inf if self.folding else self.clock.now()
            if self.folding and due > self.stamped:
                break
            if due <= now:
                if look <= news:
                    return look
                self._advance()
                continue
            repeat = self.reconciler.next_time()
            if repeat <= now:
                self.state.now = max(self.state.now, now)
                self.reconciler.catch_up()
            elif messages := self._take():
                self._take_in(messages)
            else:
                self._sleep(min(due, repeat))
        return math.inf

    def _next_repeat(self) -> float:
        """Orders are repeated by the clock, once, however long nothing ran here; in the past nothing is ordered."""
        return math.inf

    def _sleep(self, due: float) -> None:
        del self.events[: self._next_node_event]
        self._next_node_event = 0
        self.on_idle()
        with self._bell:
            now = self.clock.now()
            blocked = now < self._again
            if (blocked or not self._mail) and not self._stopping:
                alarm = self._again if blocked or self._late else (self._alarms[0][0] if self._alarms else math.inf)
                left = min(due, alarm) - now
                self._bell.wait(None if left == math.inf else max(0.0, min(left, threading.TIMEOUT_MAX)))

    def _take(self) -> list[Message]:
        """Letters that may enter together, in the order in which they came."""
        with self._bell:
            now = self.clock.now()
            if now < self._again:
                return []
            found, self._late = self._late, []
            while self._alarms and self._alarms[0][0] <= now:
                found.append(heapq.heappop(self._alarms)[2])
            while self._mail and not (found and (self._mail[0].alone or found[-1].alone)):
                found.append(self._mail.popleft())
            return found

    def serve_while(self, busy: Callable[[], bool]) -> None:
        """While a decision is being made elsewhere: take up what may enter behind it, so that nobody waits for the policy."""
        while busy():
            with self._bell:
                ready = self._mail and not self._mail[0].alone and self._mail[0].call is None and self.clock.now() >= self._again
                if not ready:
                    self._bell.wait(_SOON)
                    continue
                messages = []
                while self._mail and not self._mail[0].alone and self._mail[0].call is None:
                    messages.append(self._mail.popleft())
            self._take_in(messages)

    def ring(self) -> None:
        """Whoever waits looks again."""
        with self._bell:
            self._bell.notify_all()

    def _take_in(self, messages: list[Message]) -> None:
        """Stamp them, have them written down, let them enter."""
        at = max(self.clock.now(), math.nextafter(max(self.stamped, self.state.now), math.inf))
        opened = [found for found in (self._opened(message, at) for message in messages) if found is not None]
        if not opened:
            return
        try:
            self.on_mail(at, opened)
        except OSError as error:
            self._refuse(opened, error)
            return
        for message in opened:
            for value in message.values:
                self._enter(at, value)
            message.done(None)

    def _opened(self, message: Message, at: float) -> Message | None:
        """The letter as it enters; None if there is nothing (more) to it."""
        try:
            if message.call is not None:
                message.call()
            if message.open is not None:
                values, notes = message.open(at)
                message = replace(message, values=values, notes=notes, open=None)
            values = [value if isinstance(value, Report) else replace(value, time=at) for value in message.values]
            new = {name for value in values if isinstance(value, Submit) for name in value.names}
            for value in values:
                if not (isinstance(value, JobRequest) and new.issuperset(value.jobs)):  # what comes with it is there by then
                    self.engine.inputs.check(value)
        except Exception as error:
            message.done(error)
            return None
        if not values and not message.notes:
            message.done(None)
            return None
        return replace(message, values=values)

    def _refuse(self, messages: list[Message], error: OSError) -> None:
        """What people asked for is refused; what has happened has happened, and waits until it can be written down."""
        for message in messages:
            if message.must:
                self._late.append(message)
            else:
                message.done(error)
        self._again = self.clock.now() + self.retry

    # --- a live loop is never over --------------------------------------------------------------------------------------
    gives_up = False  # a policy that has lost many turns may answer the next one, or be replaced

    def _over(self) -> bool:
        return self._stopping
