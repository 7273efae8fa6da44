"""A function that is compiled when it is first called, by Numba or from stored machine code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from gantline._alarm import paused
from gantline._machine_code.compiler import for_kernels, for_python
from gantline._machine_code.fingerprint import Source
from gantline._machine_code.folder import alone, name_file
from gantline._machine_code.front_end import patched_numba, without_call_hooks
from gantline._machine_code.slots import OTHER_TYPES, Call, Entry, describe
from gantline._machine_code.store import entry_file, read_entry, store_entry


class Kernel(Source):
    """What Python calls, and what Numba sees when another compiled function calls it."""

    def __init__(self, function: Any, options: dict[str, Any], storable: bool, beside: bool = False) -> None:
        super().__init__(function, options)
        self.py_func = function
        self.__wrapped__ = function
        self._storable = storable
        self._beside = beside  # whether it releases the GIL
        self._dispatcher: Any = None
        self._callee: Any = None
        self._entries: dict[str, Entry | None] = {}
        self._call: Call = _not_found  # the last specialisation that was called

    @property
    def dispatcher(self) -> Any:
        """Numba's own object for this function, as Python calls it."""
        if self._dispatcher is None:
            self._dispatcher = for_python(self)
        return self._dispatcher

    @property
    def callee(self) -> Any:
        """Numba's own object for this function, as kernels call it and entries are made of it."""
        if self._callee is None:
            self._callee = for_kernels(self)
        return self._callee

    @property
    def _numba_type_(self) -> Any:
        """How Numba sees it when another compiled function calls it."""
        return self.callee._numba_type_

    def __call__(self, *args: Any) -> Any:
        answer = self._call(args)
        if answer is not OTHER_TYPES:
            return answer
        return self._find(args) if self._storable else self._through_numba(args)

    def _find(self, args: tuple[Any, ...]) -> Any:
        """Look for the code that these arguments need: loaded, stored, or compiled now."""
        key = describe(args)
        if key and key not in self._entries:
            self._entries[key] = made = read_entry(self, key) or self._make(key, args)
            if made is not None and self._beside:
                made.let_python_go_on()
        entry = self._entries.get(key)
        if entry is None:
            return self._through_numba(args)
        self._call = entry.call
        return entry.call(args)

    def _make(self, key: str, args: tuple[Any, ...]) -> Entry | None:
        """Let Numba compile it, and store that, unless another process has done so meanwhile."""
        with undisturbed(), paused(), alone(entry_file(self, key)):
            found = read_entry(self, key)
            if found is None:
                types = _compile(self.callee, args)
                if store_entry(self, key, self.callee.overloads[types]):
                    found = read_entry(self, key)
            return found

    def _through_numba(self, args: tuple[Any, ...]) -> Any:
        """Call Numba's function, which is compiled by one process and read by the others."""
        if self._dispatcher is None or not self._dispatcher.overloads:
            with undisturbed(), paused(), alone(name_file(self.full_name, self.fingerprint, "numba")):
                _compile(self.dispatcher, args)
        return self.dispatcher(*args)

    def __reduce__(self) -> Any:
        return _by_name, (self.__module__, self.__qualname__)


def _not_found(args: tuple[object, ...]) -> object:
    return OTHER_TYPES


def _by_name(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)


def _compile(dispatcher: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    types = tuple(dispatcher.typeof_pyval(arg) for arg in args)
    with patched_numba(), without_call_hooks():
        dispatcher.compile(types)
    return types


@contextmanager
def undisturbed() -> Iterator[None]:
    """Garbage collector and profile hook are off: compiling makes many objects and calls millions of functions.

    What compiling leaves behind is left to the next full collection. A collection of young objects would go through all of it at once,
    which is a twentieth of a cold start, and most commands end before it would matter.
    """
    collects, hook = gc.isenabled(), sys.getprofile()
    watched = isinstance(hook, FunctionType)  # a profiler of another kind could not be put back
    gc.disable()
    if watched:
        sys.setprofile(None)
    try:
        yield
    finally:
        if watched:
            sys.setprofile(hook)
        if collects:
            if gc.get_freeze_count() == 0:  # else a process keeps what it shares with others frozen
                gc.freeze()
                gc.unfreeze()  # into the oldest generation
            gc.enable()
