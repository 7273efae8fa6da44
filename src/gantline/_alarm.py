"""An alarm that interrupts Python code after some seconds on the clock.

In the main thread the alarm interrupts a call that takes too long, again and again, and in a way that `except Exception` does not stop.
Elsewhere there is none. Compiled code that no alarm can interrupt ends the process, if it has said that it may be ended (`may_be_ended`,
as the command line and the workers of a sweep do).
"""

from __future__ import annotations

import faulthandler
import signal
import threading
import time
from _signal import signal as set_handler  # the public one also looks up enum members, which costs more than the rest of a turn's guard
from collections.abc import Callable
from typing import IO, TypeVar

Answer = TypeVar("Answer")

AGAIN = 0.1  # seconds; the alarm rings on, should somebody have caught it
GRACE = 5.0  # seconds that an alarm has to get through before the process is ended
_epitaph: IO[bytes] | None = None


class TimeOverError(BaseException):
    """Raised inside the call; no Exception, so that it is not taken for one of the call's own."""


def may_be_ended(epitaph: IO[bytes] | None) -> None:
    """Let a call that nothing can interrupt end this process; where it was goes to the file. None: not any more."""
    global _epitaph
    _epitaph = epitaph


def with_alarm(call: Callable[[], Answer], seconds: float) -> Answer:
    """The answer of the call, or a `TimeOverError` from inside it when the seconds are over."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    inside = True

    def ring(signum: int, frame: object) -> None:
        if inside:
            raise TimeOverError

    began = time.perf_counter()
    before = set_handler(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    if _epitaph is not None:
        faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=_epitaph)
    try:
        try:
            return call()
        finally:
            inside = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        set_handler(signal.SIGALRM, before)
        if _epitaph is not None:
            faulthandler.cancel_dump_traceback_later()
        if left:  # somebody else's alarm was set: it goes on
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - began), 1e-3))
