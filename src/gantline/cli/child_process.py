"""A command that runs a user's policy, in a process that can be ended.

Python cannot interrupt compiled code, nor a loop that catches everything. So such a command runs in a child of its own: a decision that
outlasts its budget by some seconds ends the child, and the parent reports where the policy was. It also reports when the child crashes, is
killed or ends itself early. Where the parent is killed, the child is signalled to end (on Linux).
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO

from gantline._crash_report import ending_report
from gantline.cli.console import say

ENDED = 1
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AGAIN = 3.0  # seconds
_PARENT_DEATH = 1  # prctl
_ORDERLY = b"\0"  # the last byte of a child that ended normally


def is_wanted(tokens: Sequence[str]) -> bool:
    """Whether the command names a policy file, or an experiment that may name some."""
    return list(tokens[:1]) == ["experiment"] or any(re.search(r"\.py(:|$|[\s,;])", token) for token in tokens)


def in_a_child(call: Callable[[], int]) -> int:
    """The exit code of the call, made in a child process."""
    with tempfile.TemporaryFile() as crash_report:
        signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # until both processes handle them
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            from gantline._alarm import may_be_ended

            _end_with(parent)
            os.setpgid(0, 0)  # Ctrl-C reaches it once, through its parent, whether or not a terminal sent it
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
            may_be_ended(crash_report)
            faulthandler.enable(crash_report)
            try:
                return call()
            finally:  # it is ending already: ignore a second signal
                for number in _PASSED_ON:
                    signal.signal(number, signal.SIG_IGN)
                faulthandler.disable()
                os.write(crash_report.fileno(), _ORDERLY)
        return _wait_for(child, crash_report)


def _end_with(parent: int) -> None:
    """End when the parent is killed: the results would not be read, and a sweep would go on for hours."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended first
            os._exit(ENDED)


def _wait_for(child: int, crash_report: IO[bytes]) -> int:
    def send(number: int) -> None:
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(child, number)

    def pass_on(number: int, frame: object) -> None:
        """Forward the signal, and repeat it while it has no effect: one that arrives just before Python sleeps does not wake it."""
        send(number)
        signal.signal(signal.SIGALRM, lambda *_: send(number))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)

    before = {number: signal.signal(number, pass_on) for number in _PASSED_ON}
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    try:
        _, status = os.waitpid(child, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
    crash_report.seek(0)
    left, code = crash_report.read(), os.waitstatus_to_exitcode(status)
    if not left.endswith(_ORDERLY):
        say(f"error: {ending_report(left, code)}")
        return ENDED
    return code if code >= 0 else 128 - code
