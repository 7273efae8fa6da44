"""A function that is compiled when it is first called, by Numba or from stored machine code."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gantline._machine_code.compiler import for_kernels, for_python
from gantline._machine_code.fingerprint import Source
from gantline._machine_code.folder import alone, name_file
from gantline._machine_code.slots import OTHER_TYPES, Entry, describe
from gantline._machine_code.store import entry_file, read_entry, store_entry


class Kernel(Source):
    """What Python calls, and what Numba sees when another compiled function calls it."""

    def __init__(self, function: Any, options: dict[str, Any], storable: bool) -> None:
        super().__init__(function, options)
        self.py_func = function
        self.__wrapped__ = function
        self._storable = storable
        self._dispatcher: Any = None
        self._callee: Any = None
        self._entries: dict[str, Entry | None] = {}
        self._last: Entry | None = None

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
            self._callee = for_kernels(self, plain=self._storable)
        return self._callee

    @property
    def _numba_type_(self) -> Any:
        """How Numba sees it when another compiled function calls it."""
        return self.callee._numba_type_

    def __call__(self, *args: Any) -> Any:
        if self._last is not None:
            answer = self._last.call(args)
            if answer is not OTHER_TYPES:
                return answer
        return self._find(args) if self._storable else self._through_numba(args)

    def _find(self, args: tuple[Any, ...]) -> Any:
        """Look for the code that these arguments need: loaded, stored, or compiled now."""
        key = describe(args)
        if key and key not in self._entries:
            self._entries[key] = read_entry(self, key) or self._make(key, args)
        entry = self._entries.get(key)
        if entry is None:
            return self._through_numba(args)
        self._last = entry
        return entry.call(args)

    def _make(self, key: str, args: tuple[Any, ...]) -> Entry | None:
        """Let Numba compile it, and store that, unless another process has done so meanwhile."""
        with alone(entry_file(self, key)), no_collection():
            found = read_entry(self, key)
            if found is None:
                types = _compile(self.callee, args)
                if store_entry(self, key, self.callee.overloads[types]):
                    found = read_entry(self, key)
            return found

    def _through_numba(self, args: tuple[Any, ...]) -> Any:
        """Call Numba's function, which is compiled by one process and read by the others."""
        if not self.dispatcher.overloads:
            with alone(name_file(self.full_name, self.fingerprint, "numba")), no_collection():
                _compile(self.dispatcher, args)
        return self.dispatcher(*args)

    def __reduce__(self) -> Any:
        return _by_name, (self.__module__, self.__qualname__)


def _by_name(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)


def _compile(dispatcher: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    types = tuple(dispatcher.typeof_pyval(arg) for arg in args)
    dispatcher.compile(types)
    return types


@contextmanager
def no_collection() -> Iterator[None]:
    """Compiling makes many objects and hardly any garbage: looking for some would be a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
