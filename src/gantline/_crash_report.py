"""The report about a process that ended while a policy ran in it: the same text for every kind of process.

A process that runs policies writes its traceback into a file when it crashes, or is ended because nothing could interrupt it
(`gantline._alarm`). One that is killed, or ends itself, leaves none.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

_CRASH = re.compile(r"^Fatal Python error: (.+)$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<name>.+)$', re.MULTILINE)
_LIBRARIES = (str(Path(__file__).parent), str(Path(os.__file__).parent))  # this package, and Python's own


def ending_report(dump: bytes, code: int) -> str:
    """The report, from the contents of the file and how the process ended."""
    return crash_text(dump.decode(errors="replace")) or how_it_ended(code)


def how_it_ended(code: int) -> str:
    """The report about a process that ended and left no traceback."""
    if code < 0:
        cause = "by the policy, by another process, or because memory ran out"
        return f"the process that ran the policy was ended by {signal.Signals(-code).name} ({cause})"
    return f"the policy ended the process that ran it, with exit code {code} (os._exit or the like)"


def crash_text(dump: str) -> str:
    """The report about a process that was ended during a decision, or crashed; empty if it was not."""
    if not dump.strip():
        return ""
    frames = [found.groupdict() for found in _FRAME.finditer(dump)]
    own = [frame for frame in frames if not frame["file"].startswith(_LIBRARIES) and "site-packages" not in frame["file"]]
    place = f" ({own[0]['file']}:{own[0]['line']}, in {own[0]['name']})" if own else ""
    if crash := _CRASH.search(dump):
        return f"the process that ran the policy crashed: {crash[1]}{place}"
    return f"the policy could not be interrupted when its budget was over, so its process was ended{place}"
