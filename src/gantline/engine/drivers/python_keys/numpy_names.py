"""What `np` and `len` mean in a policy's module while its key is read.

NumPy asks columns what to do when it is given one, except where it makes arrays (`np.zeros(len(jobs))`, `np.asarray(column)`) and where
an array is indexed by a column (`TABLE[level]`). So while a key is read, arrays that are made there know what to do with columns. They are
arrays all the same, should another thread use the module meanwhile.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from gantline.engine.drivers.python_keys import expression
from gantline.engine.drivers.python_keys.notes import Count, NotedColumn, NotedJobs, constant, noted

_MISSING = object()


class OwnTable(np.ndarray[Any, Any]):
    """An array of the policy's own, which may be indexed by a column."""

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, NotedColumn):
            return NotedColumn(expression.take(np.asarray(self), noted(place)))
        return super().__getitem__(place)


class _NumPy(ModuleType):
    """NumPy as a policy sees it while its key is read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def _made(self, function: Any, given: Any, args: Any, more: Any) -> Any:
        if isinstance(given, NotedColumn) and not args and set(more) <= {"dtype", "copy"}:
            return given.astype(more["dtype"]) if more.get("dtype") is not None else given.copy()
        made = function(given, *args, **more)
        return made.view(OwnTable) if isinstance(made, np.ndarray) else made

    def array(self, given: Any, *args: Any, **more: Any) -> Any:
        return self._made(np.array, given, args, more)

    def asarray(self, given: Any, *args: Any, **more: Any) -> Any:
        return self._made(np.asarray, given, args, more)

    def _filled(self, function: Any, shape: Any, value: Any, kind: Any, more: Any) -> Any:
        if isinstance(shape[0] if isinstance(shape, tuple) and len(shape) == 1 else shape, Count) and not more:
            return constant(value, kind)
        return function()

    def zeros(self, shape: Any, dtype: Any = float, **more: Any) -> Any:
        return self._filled(lambda: np.zeros(shape, dtype, **more), shape, 0, dtype, more)

    def ones(self, shape: Any, dtype: Any = float, **more: Any) -> Any:
        return self._filled(lambda: np.ones(shape, dtype, **more), shape, 1, dtype, more)

    def full(self, shape: Any, fill_value: Any, dtype: Any = None, **more: Any) -> Any:
        return self._filled(lambda: np.full(shape, fill_value, dtype, **more), shape, fill_value, dtype, more)


def _length(of: Any) -> Any:
    return Count() if isinstance(of, NotedJobs | NotedColumn) else len(of)


@contextmanager
def reading_names(policy: Any) -> Iterator[Any]:
    """The policy with tables for arrays, while `np` and `len` in the modules of its functions are ours."""
    shadow = copy.copy(policy)
    for name, value in vars(policy).items():
        if isinstance(value, np.ndarray):
            object.__setattr__(shadow, name, value.view(OwnTable))
    put_back = []
    for room in _rooms(policy):
        instead: dict[str, Any] = {"len": _length} if "len" not in room else {}
        for name, value in room.items():
            if value is np:
                instead[name] = _NumPy("numpy")
            elif type(value) is np.ndarray:
                instead[name] = value.view(OwnTable)
        put_back += [(room, name, room.get(name, _MISSING)) for name in instead]
        room.update(instead)
    try:
        yield shadow
    finally:
        for room, name, value in put_back:
            if value is _MISSING:
                del room[name]
            else:
                room[name] = value


def _rooms(policy: Any) -> list[dict[str, Any]]:
    """The names that the policy's own functions see; those of this package stay as they are."""
    own = [kind for kind in type(policy).__mro__ if not _of_this_package(kind)]
    values = [value for kind in own for value in vars(kind).values()] + list(vars(policy).values())
    rooms: dict[int, dict[str, Any]] = {}
    for value in values:
        inner = getattr(value, "fget", None) if isinstance(value, property) else getattr(value, "__func__", value)
        inner = value.func if isinstance(value, cached_property) else inner
        if isinstance(inner, FunctionType) and not _of_this_package(inner):
            rooms[id(inner.__globals__)] = inner.__globals__
    return list(rooms.values())


def _of_this_package(thing: type | FunctionType) -> bool:
    return str(thing.__module__).startswith("gantline.")
