"""An alarm that interrupts Python code after some seconds on the clock.

In the main thread the alarm interrupts a call that takes too long, repeatedly, and in a way that `except Exception` does not stop.
Elsewhere there is none. Compiled code that no alarm can interrupt ends the process, if that is allowed (`may_be_ended`,
as the command line and the workers of a sweep do).
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TypeVar

Answer = TypeVar("Answer")

AGAIN = 0.1  # seconds until the alarm is repeated, in case the call has caught it
GRACE = 5.0  # seconds for which alarms are tried before the process is ended
_crash_report: IO[bytes] | None = None
_ends_at = 0.0  # when a process that nothing can interrupt is ended, on `time.perf_counter`
_paused = threading.local()  # `seconds`: for how long alarms have been paused in this thread so far


class TimeOverError(BaseException):
    """Raised inside the call; no Exception, so that it is not taken for one of the call's own."""


def may_be_ended(crash_report: IO[bytes] | None) -> None:
    """Let a call that nothing can interrupt end this process; its traceback is written to the file. None: switch that off."""
    global _crash_report
    _crash_report = crash_report


def may_end() -> bool:
    """Whether a call that nothing can interrupt ends this process."""
    return _crash_report is not None


def _end_after(seconds: float) -> None:
    """End the process after so many seconds, unless asked anew or cancelled; only where it may be ended."""
    global _ends_at
    if _crash_report is not None:
        _ends_at = time.perf_counter() + seconds
        faulthandler.dump_traceback_later(seconds, exit=True, file=_crash_report)


def clock() -> float:
    """Seconds on a clock of this thread that stops while alarms are paused."""
    return time.perf_counter() - getattr(_paused, "seconds", 0.0)


@contextmanager
def paused() -> Iterator[None]:
    """Stop alarms meanwhile: the compilation of a kernel during a call is not counted against the call."""
    began, left, every = time.perf_counter(), 0.0, 0.0
    if threading.current_thread() is threading.main_thread():
        left, every = signal.setitimer(signal.ITIMER_REAL, 0.0)
    if left and _crash_report is not None:
        faulthandler.cancel_dump_traceback_later()
    try:
        yield
    finally:
        _paused.seconds = getattr(_paused, "seconds", 0.0) + time.perf_counter() - began
        if left:
            _end_after(max(_ends_at - began, GRACE))
            signal.setitimer(signal.ITIMER_REAL, left, every)


def with_alarm(call: Callable[[], Answer], seconds: float) -> Answer:
    """The answer of the call, or a `TimeOverError` from inside it when the seconds are over."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    inside = True

    def ring(signum: int, frame: object) -> None:
        if inside:
            raise TimeOverError

    began = time.perf_counter()
    before = signal.signal(signal.SIGALRM, ring)
    left, every = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    _end_after(seconds + GRACE)
    try:
        try:
            return call()
        finally:
            inside = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        if _crash_report is not None:
            faulthandler.cancel_dump_traceback_later()
        if left:  # an alarm was set outside: restore it
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - began), 1e-3), every)


def with_alarm_anywhere(call: Callable[[], Answer], seconds: float) -> Answer:
    """The same in any thread. Signals reach only the main thread: in others a helper thread raises the error."""
    if seconds == math.inf:
        return call()
    if threading.current_thread() is threading.main_thread():
        return with_alarm(call, seconds)
    here, lock, inside, rung = ctypes.c_ulong(threading.get_ident()), threading.Lock(), True, False

    def ring() -> None:
        nonlocal rung
        with lock:
            if inside:
                rung = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(here, ctypes.py_object(TimeOverError))

    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        try:
            return call()
        finally:
            with lock:
                inside = False
            if rung:  # an error not raised yet is raised here; taken back by the C call, it would leave Python looking for it for good
                with suppress(TimeOverError):
                    for _ in range(10_000):
                        pass
    finally:
        timer.cancel()


class Bell:
    """One alarm for many short calls, where setting one for each would cost more than the calls themselves.

    It is delivered at intervals, and interrupts the present call if that began too long ago: late by a tenth of the seconds at most. Code
    between the calls must let it be delivered as often, or the process is considered stuck.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._tick = seconds, min(seconds, max(seconds / 10.0, AGAIN))
        self.began = math.inf  # when the present call began, by `clock`; infinity: there is none
        self.rings = threading.current_thread() is threading.main_thread()  # else nothing is interrupted

    def __enter__(self) -> Bell:
        if self.rings:
            self._hung = time.perf_counter()
            self._before = signal.signal(signal.SIGALRM, self._ring)
            self._left, self._every = signal.setitimer(signal.ITIMER_REAL, self._tick, self._tick)
            self._bear_with()
        return self

    def _ring(self, signum: int, frame: object) -> None:
        if clock() - self.began >= self._seconds:
            raise TimeOverError
        self._bear_with()

    def _bear_with(self) -> None:
        _end_after(self._seconds + self._tick + GRACE)

    def __exit__(self, *_: object) -> None:
        if self.rings:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, self._before)
            if _crash_report is not None:
                faulthandler.cancel_dump_traceback_later()
            if self._left:
                signal.setitimer(signal.ITIMER_REAL, max(self._left - (time.perf_counter() - self._hung), 1e-3), self._every)
