"""A function that is compiled when it is first called, by Numba or from stored machine code."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any

from gantline._alarm import paused
from gantline.core.machine_code.fingerprint import Source
from gantline.core.machine_code.folder import alone, file_of, name_of, read_file, write_file
from gantline.core.machine_code.slots import OTHER_TYPES, Call, Entry, describe


class Kernel(Source):
    """What Python calls, and what Numba sees when another compiled function calls it."""

    def __init__(self, function: Any, options: dict[str, Any], storable: bool, beside: bool = False) -> None:
        super().__init__(function, options)
        self.py_func = function
        self.__wrapped__ = function
        self._storable = storable
        self._beside = beside  # whether it releases the GIL
        self._dispatcher: Any = None
        self._entries: dict[str, Entry | None] = {}
        self._call: Call = _not_found  # the last specialisation that was called

    def __call__(self, *args: Any) -> Any:
        answer = self._call(args)
        if answer is not OTHER_TYPES:
            return answer
        return self._find(args) if self._storable else self._through_numba(args)

    def _find(self, args: tuple[Any, ...]) -> Any:
        """Look for the code that these arguments need: loaded, stored, or compiled now."""
        key = describe(args)
        if key and key not in self._entries:
            self._entries[key] = made = self._stored(key) or self._make(key, args)
            if made is not None and self._beside:
                made.let_python_go_on()
        entry = self._entries.get(key)
        if entry is None:
            return self._through_numba(args)
        self._call = entry.call
        return entry.call(args)

    def _stored(self, key: str) -> Entry | None:
        """The stored code for these types, loaded; None: there is none, or it is damaged."""
        stored = read_file(file_of(self._name(key), "o")) if self.fingerprint else None
        return None if stored is None else _load(key, stored)

    def _name(self, key: str) -> str:
        return name_of(self.full_name, f"{self.fingerprint}|{key}")

    def _make(self, key: str, args: tuple[Any, ...]) -> Entry | None:
        """Let Numba compile it, and store that, unless another process has done so meanwhile."""
        path = file_of(self._name(key), "o")
        with undisturbed(), paused(), alone(path):
            found = self._stored(key)
            if found is not None:
                return found
            from gantline.core.machine_code.compiler import entry_for

            made = entry_for(self, args)
            if made is None:
                return None
            returns, code = made
            content = json.dumps(returns).encode() + b"\n" + code
            if self.fingerprint:
                write_file(path, content)
            return _load(key, content)

    def _through_numba(self, args: tuple[Any, ...]) -> Any:
        """Call it through a function of Numba's, which is compiled by one process and read by the others."""
        if self._dispatcher is None or not self._dispatcher.overloads:
            with undisturbed(), paused(), alone(file_of(self._name("numba"), "o")):
                from gantline.core.machine_code.compiler import for_python

                self._dispatcher = for_python(self)
                return self._dispatcher(*args)
        return self._dispatcher(*args)

    def __reduce__(self) -> Any:
        return _by_name, (self.__module__, self.__qualname__)


def _load(key: str, stored: bytes) -> Entry:
    from gantline.core.machine_code.object_code import ENTRY, load

    returns, _, code = stored.partition(b"\n")
    engine = load(code)
    return Entry(key, engine.get_function_address(ENTRY), [(int(at), str(kind)) for at, kind in json.loads(returns)], engine)


def _not_found(args: tuple[object, ...]) -> object:
    return OTHER_TYPES


def _by_name(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Garbage collector and profile hook are off: compiling makes many objects and calls millions of functions."""
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
            gc.enable()
