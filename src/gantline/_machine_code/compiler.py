"""How Numba compiles a kernel: with a door for Python, or without one for other kernels that call it."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

#: a callee needs no entry that unpacks Python's objects; both wrappers take a sixth of the time that compiling takes
_NO_DOORS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_SWITCHES = ("_nrt", *_NO_DOORS)


def for_python(function: Callable[..., Any], options: dict[str, Any], cache: bool) -> Any:
    """Numba's object for a function that Python calls, with or without Numba's own cache on disk."""
    return _dispatcher(function, options, cache)


def for_kernels(function: FunctionType, options: dict[str, Any], plain: bool) -> Any:
    """Numba's object for a function that other kernels call.

    `plain`: compile it once for all whole numbers. Numba would do so for every constant that some caller writes down, and for every width.
    """
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__qualname__ = f"{function.__qualname__}_inside"  # Numba's cache would take one for the other
    twin.__module__ = function.__module__
    made = _dispatcher(twin, options | _NO_DOORS, cache=True)
    if plain:
        resolve = made.get_call_template
        made.get_call_template = lambda args, kws: resolve([_plain(kind) for kind in args], {k: _plain(kind) for k, kind in kws.items()})
    return made


def _dispatcher(function: Callable[..., Any], options: dict[str, Any], cache: bool) -> Any:
    import numba

    try:
        return numba.njit(cache=cache, **options)(function)
    except (KeyError, TypeError):  # a version of Numba without one of the switches: the same code, slower
        known = {name: value for name, value in options.items() if name not in _SWITCHES}
        return numba.njit(cache=cache, **known)(function)


def _plain(kind: Any) -> Any:
    """The type of any value like it: a constant is a number, and a whole number has 64 bits."""
    import numba.types as known

    types: Any = known
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind
