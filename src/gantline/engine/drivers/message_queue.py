"""What other threads send to a live loop: messages, each to be taken up as soon as it can be or at a given time."""

from __future__ import annotations

import heapq
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gantline.core.inputs import Input

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
