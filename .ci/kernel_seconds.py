"""A pytest plugin: the seconds that each kernel takes to be compiled, or to run as Python. `make settled` runs it.

`-p kernel_seconds` with GANTLINE_KERNEL_SECONDS=FILE writes FILE-WORKER.json. With GANTLINE_KERNELS=plain every kernel runs as Python until
it has taken longer than any of them takes to be compiled, and the types of its arguments are noted.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from time import process_time  # bound here: the conformance suite watches the module
from typing import Any

import pytest
from tests.settled import types_of

from gantline._machine_code import Kernel

LONGEST = 20.0  # processor seconds; the slowest to compile takes 15
_PLAIN = os.environ.get("GANTLINE_KERNELS") == "plain"
_SPENT: Counter[str] = Counter()
_TYPES: dict[str, set[str]] = defaultdict(set)
_INSIDE = [False]


def _timed(name: str, run: Any, *args: Any) -> Any:
    """What is called from within counts for the kernel that is called first."""
    if _INSIDE[0]:
        return run(*args)
    _INSIDE[0], begun = True, process_time()
    try:
        return run(*args)
    finally:
        _INSIDE[0] = False
        _SPENT[name] += process_time() - begun


def _plainly(kernel: Kernel, *args: Any) -> Any:
    if _SPENT[kernel.full_name] > LONGEST:
        return _CALL(kernel, *args)
    if not _INSIDE[0]:
        _TYPES[kernel.full_name].add(types_of(args))
    return _timed(kernel.full_name, kernel.py_func, *args)


def _making(kernel: Kernel, *args: Any) -> Any:
    return _timed(kernel.full_name, _MAKE, kernel, *args)


def _through_numba(kernel: Kernel, *args: Any) -> Any:
    known = kernel._dispatcher is not None and kernel._dispatcher.overloads
    return _THROUGH(kernel, *args) if known else _timed(kernel.full_name, _THROUGH, kernel, *args)


_CALL, _MAKE, _THROUGH = Kernel.__call__, Kernel._make, Kernel._through_numba
if _PLAIN:
    Kernel.__call__ = _plainly  # type: ignore[method-assign]
else:
    Kernel._make, Kernel._through_numba = _making, _through_numba  # type: ignore[method-assign]


def pytest_sessionfinish(session: pytest.Session) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    with open(f"{os.environ['GANTLINE_KERNEL_SECONDS']}-{worker}.json", "w", encoding="utf-8") as file:
        json.dump({"seconds": _SPENT, "types": {name: sorted(types) for name, types in _TYPES.items()}}, file)
