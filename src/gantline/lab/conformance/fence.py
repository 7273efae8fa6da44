"""A fence around a decision: detects clocks, unseeded randomness and I/O while a policy decides.

Calls of built-in functions and questions to the environment are seen by a profiling hook, draws from the global generators by their
changed state. Loading a module or
a compiled kernel for the first time reads files too, and NumPy asks for entropy before it takes the key of `snapshot.rng`; such calls
are allowed by where they come from.
"""

from __future__ import annotations

import datetime
import gc
import os
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

_CLOCK = {
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "thread_time",
    "localtime", "gmtime", "sleep", "clock_gettime", "clock_gettime_ns",
}  # fmt: skip
_SYSTEM = {
    "open", "read", "write", "stat", "lstat", "listdir", "scandir", "system", "fork", "getcwd", "remove", "unlink", "mkdir", "rmdir",
    "rename", "replace", "readlink", "getloadavg",
}  # fmt: skip
_DATES, _ENTROPY, _OPENING, _TALKING = {"now", "today", "utcnow"}, {"urandom", "getrandom"}, {"open", "open_code"}, {"print", "input"}
_WATCHED = _CLOCK | _SYSTEM | _DATES | _ENTROPY | _OPENING | _TALKING
_OUTSIDE = {"_socket", "_posixsubprocess", "_sqlite3"}
_ASKING = {"__getitem__", "__iter__", "__len__", "copy"}
_ENVIRONMENT = {getattr(type(os.environ), name).__code__ for name in _ASKING}
_INNOCENT = ("importlib", "_frozen_importlib", "numba", "llvmlite", "gantline.core.machine_code", "gantline._alarm", "gantline.core.rng")


@contextmanager
def fence() -> Iterator[list[str]]:
    """Collect in the list what crossed the fence inside the block."""
    crossed: list[str] = []
    before_random, before_numpy = random.getstate(), _numpy_state()
    before_hook = sys.getprofile()

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            if called.__name__ in _WATCHED or called.__module__ in _OUTSIDE:  # few calls are; this is checked at every call in a decision
                what = forbidden(called)
                if what and not _is_innocent(frame):
                    crossed.append(f"{what} in {frame.f_code.co_name}(), line {frame.f_lineno}")
        elif event == "call" and frame.f_code.co_name in _ASKING and frame.f_code in _ENVIRONMENT and not _is_innocent(frame):
            crossed.append(f"reads the environment{_read_at(frame)}")

    collecting = gc.isenabled()
    gc.disable()  # callbacks of the collector are not the policy's doing
    sys.setprofile(watch)
    try:
        yield crossed
    finally:
        sys.setprofile(before_hook)
        if collecting:
            gc.enable()
        if random.getstate() != before_random:
            crossed.append("draws from the global generator of random")
        if _numpy_state() != before_numpy:
            crossed.append("draws from the global generator of NumPy")


def forbidden(called: object) -> str:
    """What a built-in function does to the outside world; empty: nothing."""
    module, name = getattr(called, "__module__", None), getattr(called, "__name__", "")
    owner = getattr(called, "__self__", None)
    if module == "time" and name in _CLOCK:
        return f"reads a clock: time.{name}"
    if name in _DATES and isinstance(owner, type) and issubclass(owner, datetime.date):
        return f"reads a clock: {owner.__name__}.{name}"
    if module == "posix" and name in _ENTROPY:
        return f"draws randomness that no seed controls: os.{name}"
    if (module in ("io", "_io") and name in _OPENING) or (module == "posix" and name in _SYSTEM):
        return f"does I/O: {name}"
    if module == "builtins" and name in _TALKING:
        return f"does I/O: {name}"
    if module in _OUTSIDE:
        return f"does I/O: {module.lstrip('_')}.{name}"
    return ""


def _is_innocent(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith(_INNOCENT):
            return True
        frame = frame.f_back
    return False


def _read_at(frame: FrameType) -> str:
    """Where in the policy the environment was read: the first frame outside of the standard library's own."""
    asking = frame.f_back
    while asking is not None and asking.f_code.co_filename in (os.__file__, "<frozen os>", "<frozen _collections_abc>"):
        asking = asking.f_back
    return f" in {asking.f_code.co_name}(), line {asking.f_lineno}" if asking is not None else ""


def _numpy_state() -> tuple[object, ...]:
    state = np.random.get_state(legacy=False)  # noqa: NPY002
    inner = state["state"]
    return state["bit_generator"], inner["key"].tobytes(), inner["pos"], state["has_gauss"], state["gauss"]
