"""Answers that a thread waits for: the thread that owns the engine gives them, as results of futures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from gantline.core.columns import Node
from gantline.core.errors import RefusedError, UnreachableError
from gantline.core.inputs import Action, Input, JobRequest, NodeEvent
from gantline.engine.state import State
from gantline.live.wall_time import Live, Message

Answer = TypeVar("Answer")
_LONGEST_WAIT = 60.0  # seconds that a thread waits for an answer


def settle(future: Future[Any], error: BaseException | None, value: Any) -> None:
    """Set a future's result or error."""
    if error is None:
        future.set_result(value)
    elif isinstance(error, OSError):
        future.set_exception(RefusedError(f"the store cannot be written: {error}", where="store", fix="is the disk full?"))
    else:
        future.set_exception(error)


def copy_result(source: Future[Any], target: Future[Any]) -> None:
    """Copy the result or error of one future to another, unless that has been told meanwhile that the service has ended."""
    if target.done():
        return
    error = source.exception()
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(source.result())


def wait(future: Future[Answer]) -> Answer:
    """The result, if it comes in time."""
    try:
        return future.result(_LONGEST_WAIT)
    except TimeoutError:
        raise UnreachableError(
            "the scheduler has not answered in time", where="scheduler", fix="ask again; requests with an id are safe"
        ) from None


# The live clock: seconds since the home was made.
#
# The wall clock is read once, at the start; from then on the monotonic clock counts, so that a jump of the wall
# clock changes nothing. `jump` is how far the two have come apart since.


class WallClock:
    """Seconds since `born` (seconds since the epoch), never less than `least`: time does not go back over a restart either.

    `wall` is the clock that people can set; tests give one of their own.
    """

    def __init__(self, born: float, least: float = 0.0, wall: Callable[[], float] = time.time) -> None:
        self.born, self._wall = born, wall
        self._began = time.monotonic()
        self._at = max(wall() - born, least)

    def now(self) -> float:
        return self._at + (time.monotonic() - self._began)

    def at(self, wall: float) -> float:
        """The live time of a wall-clock time, as well as it is known; never in the future."""
        return min(max(wall - self.born - self.jump(), 0.0), self.now())

    def wall(self, at: float) -> float:
        """The time of day, in seconds since the epoch, of an instant."""
        return self.born + at

    def day_and_time(self, at: float) -> str:
        """The same as text for people."""
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(round(self.wall(at))))

    def jump(self) -> float:
        """Seconds by which the wall clock has been set forward (or back, below zero) since the start."""
        return (self._wall() - self.born) - self.now()


# The thread that owns the engine: all others send it messages, and wait for its answers.


class LoopThread:
    """Runs a live loop until it is stopped."""

    def __init__(self, loop: Live) -> None:
        self.loop = loop
        self.failure: BaseException | None = None  # what ended it, where it was not stopped
        self._thread: threading.Thread | None = None
        self._ended = False
        self._changing = threading.Lock()  # of what is waited for, and whether it has ended
        self._awaited: set[Callable[[], None]] = set()  # each says that there is no answer

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="gantline-scheduler", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.loop.run()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._tell_who_waits()

    def _tell_who_waits(self) -> None:
        """It has ended, and answers nobody any more."""
        with self._changing:
            self._ended, left = True, list(self._awaited)
        for refuse in left:
            refuse()

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def stop(self) -> None:
        """Stop before the next step."""
        self.loop.messages.stop()
        if self._thread is not None:
            self._thread.join()

    def post(self, message: Message) -> None:
        """Send it a message; refused where it does not run."""
        if self._ended or self._thread is None:
            raise UnreachableError("the scheduler is not running", where="scheduler", fix="start it with gantline up")
        self.loop.messages.post(message)

    def send(self, values: Sequence[Input]) -> None:
        """Apply inputs together, and wait until they are applied."""
        future: Future[None] = Future()
        self.post(Message(values, lambda error: settle(future, error, None), alone=True))
        self.wait(future)

    def ask(self, question: Callable[[], Answer]) -> Answer:
        """The answer to a question, put between two steps."""
        future: Future[Answer] = Future()
        found: list[Answer] = []
        self.post(Message((), lambda error: settle(future, error, found[0] if found else None), call=lambda: found.append(question())))
        return self.wait(future)

    def wait(self, future: Future[Answer]) -> Answer:
        """The answer to what was posted; refused as soon as the thread has ended without one."""
        with self._changing:
            if self._ended and not future.done():
                raise _no_answer()
            refuse = partial(_refuse, future)
            self._awaited.add(refuse)
        try:
            return wait(future)
        finally:
            with self._changing:
                self._awaited.discard(refuse)


def _refuse(future: Future[Answer]) -> None:
    if not future.done():  # one may be answered by another: two that have asked for the same
        future.set_exception(_no_answer())


def _no_answer() -> UnreachableError:
    fix = "start it with gantline up, and ask again; requests with an id are safe"
    return UnreachableError("the service has ended before it could answer", where="scheduler", fix=fix)


# Stops a service together with its jobs, which are saved where they can be and go on when a service starts again.


def drain(thread: LoopThread, timeout: float) -> None:
    """Stop all jobs, saved where they can be, and decide nothing more; those that did not stop in time are left running."""
    nodes = thread.ask(lambda: _nodes_up(thread.loop.state))
    thread.send([NodeEvent(0.0, name, "drain") for name in nodes])
    _stop_all(thread)
    end = time.monotonic() + timeout
    while thread.ask(lambda: len(thread.loop.reconciler.live)) and time.monotonic() < end:
        time.sleep(0.02)
    future: Future[None] = Future()

    def finish(error: BaseException | None) -> None:
        thread.loop.messages.stop()  # before the next decision, which the next service makes
        settle(future, error, None)

    thread.loop.messages.post(Message([NodeEvent(0.0, name, "up") for name in nodes], finish, alone=True))
    thread.wait(future)


def _stop_all(thread: LoopThread) -> None:
    """Stop all jobs that run when the request is handled: nothing starts after it, and ended jobs are left out."""
    future: Future[None] = Future()

    def open_(at: float) -> tuple[list[Input], tuple[()]]:
        state = thread.loop.state
        return [JobRequest(at, Action.REQUEUE, state.tables.ids[row]) for row in state.running_rows.tolist()], ()

    thread.post(Message((), lambda error: settle(future, error, None), open_, alone=True))
    thread.wait(future)


def _nodes_up(state: State) -> list[str]:
    t = state.tables
    return [node.name for k, node in enumerate(t.cluster.nodes) if t.NI[Node.UP, k] == 1]
