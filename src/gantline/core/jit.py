"""How kernels are compiled: when they are first called, cached, and without reference counting.

Kernels get arrays and hand none out, so counting references to them is pure cost; in the innermost loops it was more than half of
the time (atomic updates at every call of a small function). A kernel must therefore not allocate: scratch space comes as an argument. Its
machine code is stored, so that later processes call it without importing Numba (`gantline.core.machine_code`).
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar, cast

from gantline.core.machine_code import FROM_ZERO, Kernel

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function that allocates nothing."""
    return cast(Function, Kernel(function, {"allocates": False}, storable=True))


def variant(function: Function, name: str, **known: Any) -> Function:
    """A kernel once more, under another name, with other values for names that it reads in its module.

    Branches that these values rule out are not compiled: ``if PREEMPTS:`` with ``PREEMPTS=False``.
    """
    found: Any = function
    plain = found.py_func
    twin = FunctionType(plain.__code__, {**plain.__globals__, **known}, name, plain.__defaults__, plain.__closure__)
    twin.__module__, twin.__qualname__, twin.__doc__ = plain.__module__, name, plain.__doc__
    return cast(Function, Kernel(twin, found.options, storable=True))


def kernel_from_zero(function: Function) -> Function:
    """Compile a function that allocates nothing and never counts from the end of an array.

    Numba asks of every index whether it lies below zero and adds the length then, which is a quarter of what a loop of short steps costs.
    Here nothing checks: an index below zero reads what lies in front of the array.
    """
    return cast(Function, Kernel(function, {"allocates": False, FROM_ZERO: True}, storable=True))


def compiled(function: Function) -> Function:
    """Compile a function that may allocate."""
    return cast(Function, Kernel(function, {}, storable=False))


def compiled_from_zero(function: Function) -> Function:
    """Compile a function that may allocate and never counts from the end of an array; see `kernel_from_zero`."""
    return cast(Function, Kernel(function, {FROM_ZERO: True}, storable=False))


def compiled_numpy(function: Callable[..., Any]) -> Any:
    """Compile a function that may allocate and divides as NumPy does: by zero gives infinity, not an error."""
    return Kernel(function, {"error_model": "numpy"}, storable=False)
