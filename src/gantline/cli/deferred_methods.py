"""Methods of dataclasses that are compiled when they are first called, while the command line starts.

A short command makes 110 dataclasses, each with an `__eq__`, a `__hash__`, a `__repr__` and, where it is frozen, two methods more, of which
hardly any is ever called: compiling them takes 0.05 s, a twelfth of the command. Here a method in their place compiles the one that
`dataclasses` would have made, puts it into the class, and calls it. `__init__` is always compiled: its signature is read.

Only in processes of the command line; from Python 3.13 on `dataclasses` makes all methods at once, and is left as it is.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from types import FunctionType

DEFERRED = frozenset(("__eq__", "__hash__", "__repr__", "__setattr__", "__delattr__"))


def defer_methods() -> None:
    """From now on, in this process."""
    if sys.version_info < (3, 13) and dataclasses._create_fn.__module__ == "dataclasses":  # type: ignore[attr-defined]
        dataclasses._create_fn = deferring(dataclasses._create_fn)  # type: ignore[attr-defined]


def deferring(create: Callable[..., FunctionType]) -> Callable[..., FunctionType]:
    """The same function, which hands out methods that are not compiled yet."""

    def create_later(name: str, *given: object, **more: object) -> FunctionType:
        if name not in DEFERRED:
            return create(name, *given, **more)

        def method(self: object, *values: object) -> object:
            made = create(name, *given, **more)
            made.__qualname__ = method.__qualname__
            for owner in type(self).__mro__:
                if vars(owner).get(name) is method:
                    setattr(owner, name, made)
            return made(self, *values)

        method.__name__ = name
        assert isinstance(method, FunctionType)
        return method

    return create_later
