"""Kernels that have not changed since their machine code was tested run as the Python in which they are written.

Compiling every kernel is a third of a run in a new environment, and says nothing new about a kernel whose code and arguments are the same.
`settled.txt` names the kernels that take longer to compile than to run here, each with a fingerprint of what its machine code depends on,
and with the types of arguments that it was called with. An edited kernel has another fingerprint, so it is compiled, as is one that is
called with other types; with other versions of Python, NumPy or Numba than those in the list's first line all of them are. Machine code
that an earlier run or another process has stored is used. The targets `test-long` and `test-system` and `pytest --compiled` compile all;
`make settled` writes the list once the whole suite has passed so.
"""

from __future__ import annotations

import hashlib
import platform
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gantline._machine_code import Kernel
from gantline._machine_code.slots import OTHER_TYPES, describe

LIST = Path(__file__).with_name("settled.txt")
_DIGESTS: dict[object, str] = {}


@dataclass(frozen=True)
class Settled:
    """What a kernel was when its machine code passed the tests, and the types of arguments that it was called with."""

    fingerprint: str
    types: frozenset[str]


def versions() -> str:
    """What machine code depends on besides its source."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"Python {python}, NumPy {version('numpy')}, Numba {version('numba')}, llvmlite {version('llvmlite')}"


def read_settled(path: Path = LIST) -> dict[str, Settled]:
    """By the names of kernels; none where the list was written with other versions."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    told = [line for line in lines if line and not line.startswith("#")]
    rows = [line.split() for line in told[1:]] if told and told[0] == versions() else []
    return {name: Settled(fingerprint, frozenset(types)) for name, fingerprint, *types in rows}


def write_settled(settled: Mapping[str, Settled], head: str, path: Path = LIST) -> None:
    """The list for these versions."""
    lines = [" ".join([name, one.fingerprint, *sorted(one.types)]) for name, one in sorted(settled.items())]
    path.write_text("\n".join([head.rstrip("\n"), versions(), *lines]) + "\n", encoding="utf-8")


def run_settled_plainly(monkeypatch: pytest.MonkeyPatch, settled: Mapping[str, Settled]) -> None:
    """From now on this process does not compile these kernels, unless they or the types of their arguments have changed."""
    call, make, through_numba = Kernel.__call__, Kernel._make, Kernel._through_numba

    def is_settled(kernel: Kernel, args: tuple[Any, ...]) -> bool:
        known = settled.get(kernel.full_name)
        return known is not None and known.fingerprint == kernel.fingerprint and types_of(args) in known.types

    def __call__(kernel: Kernel, *args: Any) -> Any:
        return kernel.py_func(*args) if _THREAD.inside else call(kernel, *args)  # inside: called by a kernel that runs plainly

    def _make(kernel: Kernel, key: str, args: tuple[Any, ...]) -> Any:
        return _Plain(kernel.py_func, key) if is_settled(kernel, args) else make(kernel, key, args)

    def _through_numba(kernel: Kernel, args: tuple[Any, ...]) -> Any:
        compiled = kernel._dispatcher is not None and kernel._dispatcher.overloads
        return through_numba(kernel, args) if compiled or not is_settled(kernel, args) else _run_plainly(kernel.py_func, args)

    for name, function in (("__call__", __call__), ("_make", _make), ("_through_numba", _through_numba)):
        monkeypatch.setattr(Kernel, name, function)


class _Plain:
    """Stands where an entry for machine code would: takes the same arguments, and runs the Python."""

    def __init__(self, function: Callable[..., Any], key: str) -> None:
        self._function, self._key = function, key
        self._accepted: dict[object, bool] = {}

    def call(self, args: tuple[Any, ...]) -> Any:
        types = _types(args)
        accepts = self._accepted.get(types)
        if accepts is None:
            accepts = self._accepted[types] = describe(args) == self._key
        return _run_plainly(self._function, args) if accepts else OTHER_TYPES

    def let_python_go_on(self) -> None:
        """It does so anyway."""


class _Thread(threading.local):
    inside = False


_THREAD = _Thread()


def _run_plainly(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    _THREAD.inside = True
    try:
        with np.errstate(all="ignore"):  # machine code does not warn
            return function(*args)
    finally:
        _THREAD.inside = False


def types_of(args: tuple[Any, ...]) -> str:
    """A short name for the types of arguments, as machine code tells them apart."""
    key = _types(args)
    if key not in _DIGESTS:
        _DIGESTS[key] = hashlib.blake2b(repr(key).encode(), digest_size=4).hexdigest()
    return _DIGESTS[key]


def _types(args: Iterable[Any]) -> tuple[object, ...]:
    found: list[object] = []
    for arg in args:
        if type(arg) is np.ndarray:
            found.append((arg.dtype.str, arg.ndim, arg.flags.num & ~_OWNS))
        elif isinstance(arg, tuple):
            found.append((type(arg).__qualname__, _types(arg)))
        else:
            found.append(type(arg).__qualname__)
    return tuple(found)


_OWNS = 4  # NumPy's flag for an array which owns its memory
