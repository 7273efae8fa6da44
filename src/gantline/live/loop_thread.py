"""The thread that owns the engine: all others send it messages, and wait for its answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from gantline.core.errors import UnreachableError
from gantline.core.inputs import Input
from gantline.engine.drivers.live import Live, Message
from gantline.live.answers import Answer, settle, wait


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
