"""A function that is compiled when it is first called, by Numba or from stored machine code."""

from __future__ import annotations

import gc
from typing import Any

from gantline._machine_code.compiler import for_kernels, for_python
from gantline._machine_code.slots import OTHER_TYPES, Entry, describe
from gantline._machine_code.store import read_entry, store_entry


class Kernel:
    """What Python calls, and what Numba sees when another compiled function calls it."""

    def __init__(self, function: Any, options: dict[str, Any], storable: bool) -> None:
        self.function = function
        self.options = options
        self.py_func = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
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
            self._dispatcher = for_python(self.function, self.options, cache=True)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:
        """How Numba sees it when another compiled function calls it."""
        if self._callee is None:
            self._callee = for_kernels(self.function, self.options, plain=self._storable)
        return self._callee._numba_type_

    def __call__(self, *args: Any) -> Any:
        if self._last is not None:
            answer = self._last.call(args)
            if answer is not OTHER_TYPES:
                return answer
        return self._find(args) if self._storable else self.dispatcher(*args)

    def _find(self, args: tuple[Any, ...]) -> Any:
        """Look for the code that these arguments need: loaded, stored, or compiled now."""
        key = describe(args)
        if key and key not in self._entries:
            self._entries[key] = read_entry(self, key) or self._make(key, args)
        entry = self._entries.get(key)
        if entry is None:
            return self.dispatcher(*args)
        self._last = entry
        return entry.call(args)

    def _make(self, key: str, args: tuple[Any, ...]) -> Entry | None:
        """Let Numba compile it, and store that."""
        collects = gc.isenabled()
        gc.disable()  # it makes many objects and hardly any garbage: looking for some would be a tenth of the time
        try:
            types = tuple(self.dispatcher.typeof_pyval(arg) for arg in args)
            self.dispatcher.compile(types)
            return read_entry(self, key) if store_entry(self, key, types) else None
        finally:
            if collects:
                gc.enable()

    def __reduce__(self) -> Any:
        return _by_name, (self.__module__, self.__qualname__)


def _by_name(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)
