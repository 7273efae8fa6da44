"""Kernels that have not changed since their machine code was tested run as the Python in which they are written.

Compiling every kernel is a third of a run in a new environment, and says nothing new about a kernel whose code and arguments are the same.
`settled.txt` names the kernels that take longer to compile than to run here, each with a fingerprint of what its machine code depends on,
and with the types of arguments that it was called with. An edited kernel has another fingerprint, so it is compiled, as is one that is
called with other types; with other versions of Python, NumPy or Numba than those in the list's first line all of them are. The targets
`test-long` and `test-system` and `pytest --compiled` compile all; `make settled` writes the list once the whole suite has passed so.
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

LIST = Path(__file__).with_name("settled.txt")
_INSIDE = threading.local()
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
    """From now on these kernels are not compiled in this process, unless they or the types of their arguments have changed."""
    call = Kernel.__call__
    types_when_settled: dict[Kernel, frozenset[str]] = {}

    def __call__(kernel: Kernel, *args: Any) -> Any:
        if getattr(_INSIDE, "plain", False):
            return kernel.py_func(*args)  # called by a kernel that runs plainly
        types = types_when_settled.get(kernel)
        if types is None:
            known = settled.get(kernel.full_name)
            types = known.types if known is not None and known.fingerprint == kernel.fingerprint else frozenset()
            types_when_settled[kernel] = types
        return _run_plainly(kernel.py_func, args) if types and types_of(args) in types else call(kernel, *args)

    monkeypatch.setattr(Kernel, "__call__", __call__)


def _run_plainly(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    _INSIDE.plain = True
    try:
        with np.errstate(all="ignore"):  # machine code does not warn
            return function(*args)
    finally:
        _INSIDE.plain = False


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
