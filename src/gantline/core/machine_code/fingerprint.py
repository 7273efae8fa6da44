"""What a kernel's code depends on, as a short text: its own instructions, the constants it reads, and the same of every kernel it calls.

Stored code is named after it, so it does not matter where the sources are, when they were written, or what else was edited.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cached_property
from typing import Any

import numpy as np

from gantline.core.constants import ConstantsType

_NUMBERS = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic)
_AS_GOOD_AS_THEIR_VERSION = ("math", "numpy", "numba")


#: an option of a kernel: no index of it lies below zero
FROM_ZERO = "from_zero"


class NoFingerprint(TypeError):
    """A kernel reads something whose content cannot be described."""


class Source:
    """A function that is to be compiled, and how."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self.function, self.options = function, options
        self.codes: dict[tuple[Any, ...], Any] = {}  # what Numba has made of it, by the types of its arguments
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__

    @property
    def full_name(self) -> str:
        return f"{self.__module__}.{self.__qualname__}"

    @cached_property
    def fingerprint(self) -> str:
        """A name for the machine code that it becomes; empty: it reads something whose content cannot be described."""
        own: dict[Source, str] = {}
        waiting: list[Source] = [self]
        try:
            while waiting:
                one = waiting.pop()
                if one not in own:
                    own[one], callees = one._own_part
                    waiting += callees
        except NoFingerprint:
            return ""
        parts = [own.pop(self), *sorted(own.values())]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    @cached_property
    def _own_part(self) -> tuple[str, list[Source]]:
        callees: list[Source] = []
        return f"{sorted(self.options.items())}|{_describe_function(self.function, callees)}", callees


def _describe_function(function: Any, callees: list[Source]) -> str:
    """A function's own part; the kernels that it calls go to the list."""

    def describe(value: Any) -> str:
        if isinstance(value, Source):
            callees.append(value)
            return f"kernel {value.full_name}"
        return _describe(value, describe)

    words = [f"{function.__module__}.{function.__qualname__}", describe(function.__defaults__)]
    words += [describe(cell.cell_contents) for cell in function.__closure__ or ()]
    for code in _codes(function.__code__):
        consts = code.co_consts[1:] if code.co_consts and code.co_consts[0] == function.__doc__ else code.co_consts
        words += [code.co_code.hex(), code.co_exceptiontable.hex(), str((code.co_argcount, code.co_flags, code.co_varnames, code.co_names))]
        words += [describe(const) for const in consts if not isinstance(const, types.CodeType)]
        words += _describe_names(function.__globals__, code.co_names, describe)
    return " ".join(words)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def _describe_names(namespace: dict[str, Any], names: tuple[str, ...], describe: Callable[[Any], str]) -> list[str]:
    """What the names that a function reads mean, in its own module and in modules that it reads them from."""
    words, namespaces, seen = [], [namespace], set()
    while namespaces:
        namespace = namespaces.pop()
        for name in names:
            value = namespace.get(name)
            if name in namespace and not isinstance(value, types.ModuleType | ConstantsType):
                words.append(f"{name}={describe(value)}")
            elif isinstance(value, types.ModuleType | ConstantsType) and value not in seen:
                seen.add(value)
                words.append(f"{name}={type(value).__name__} {value.__name__}")
                if value.__name__.partition(".")[0] not in _AS_GOOD_AS_THEIR_VERSION:
                    namespaces.append(vars(value))
    return words


def _describe(value: Any, describe: Callable[[Any], str]) -> str:
    """A text for a constant; two are equal if and only if the compiled code may be."""
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name}={value.value!r}"
    if isinstance(value, _NUMBERS):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        return f"array {value.dtype.str} {value.shape} {hashlib.blake2b(np.ascontiguousarray(value).tobytes()).hexdigest()}"
    if isinstance(value, tuple | frozenset):
        inside = [describe(one) for one in value]
        return f"{type(value).__qualname__}({', '.join(inside if isinstance(value, tuple) else sorted(inside))})"
    if isinstance(value, type) and issubclass(value, Enum):
        return f"enum {value.__qualname__} {[(one.name, one.value) for one in value]}"
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return f"class {value.__module__}.{value.__qualname__} {value._fields} {describe(tuple(value._field_defaults.values()))}"  # type: ignore[attr-defined]
    if isinstance(value, types.BuiltinFunctionType | np.ufunc) or (isinstance(value, type) and value.__module__ in ("builtins", "numpy")):
        return f"{getattr(value, '__module__', '')}.{value.__name__}"
    raise NoFingerprint(f"{type(value).__name__}")
