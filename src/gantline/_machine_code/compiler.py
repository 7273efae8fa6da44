"""How Numba compiles a kernel: with an entry point for Python, or without one, to be called by other kernels."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from gantline._machine_code.fingerprint import Source

#: a callee needs no entry that unpacks Python's objects; both wrappers take a sixth of the time that compiling takes
_NO_DOORS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
_ONLY_FROM_PYTHON = {"no_cfunc_wrapper": True}  # no entry point for C
_SWITCHES = ("_nrt", *_NO_DOORS)
#: our own option: no index of the function lies below zero
FROM_ZERO = "from_zero"


def for_python(source: Source) -> Any:
    """Numba's object for a function that Python calls."""
    return _dispatcher(source.function, source.options | _ONLY_FROM_PYTHON, source, "for Python")


def for_kernels(source: Source) -> Any:
    """Numba's object for a function that other kernels call, or that becomes an entry.

    Optimising is left to the kernel that calls it, or to the entry. It is compiled once for all whole numbers; Numba would do so for every
    constant that some caller writes down, and for every width.
    """
    function = source.function
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__qualname__ = f"{function.__qualname__}_inside"  # the same function for Python may be in memory too, as another symbol
    twin.__module__ = function.__module__
    made = _dispatcher(twin, source.options | _NO_DOORS, source, "for kernels", late=True)
    resolve = made.get_call_template
    made.get_call_template = lambda args, kws: resolve([_plain(kind) for kind in args], {k: _plain(kind) for k, kind in kws.items()})
    return made


def _dispatcher(function: Any, options: dict[str, Any], source: Source, use: str, late: bool = False) -> Any:
    import numba

    from gantline._machine_code.numba_cache import keep_results, make_ready, with_late_pipeline

    from_zero = options.get(FROM_ZERO, False)
    options = {name: value for name, value in options.items() if name != FROM_ZERO}
    try:
        made = numba.njit(**(with_late_pipeline(options, from_zero) if late else options))(function)
    except (KeyError, TypeError):  # a version of Numba without one of the switches: the same code, slower
        known = {name: value for name, value in options.items() if name not in _SWITCHES}
        made = numba.njit(**known)(function)
    if not late:
        make_ready(made)
    keep_results(made, source.full_name, source.fingerprint and f"{source.fingerprint}|{use}")
    return made


def _plain(kind: Any) -> Any:
    """The type of any value like it: a constant is a number, and a whole number has 64 bits."""
    import numba.types as known

    types: Any = known
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind
