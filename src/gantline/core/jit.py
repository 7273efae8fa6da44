"""How kernels are compiled: cached, and without reference counting.

Kernels get arrays and hand none out, so counting references to them is pure cost; in the innermost loops it was more than half of
the time (atomic updates at every call of a small function). A kernel must therefore not allocate: scratch space comes as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile a function that allocates nothing."""
    njit: Any = numba.njit
    try:
        made: Function = njit(cache=True, _nrt=False)(function)
    except (KeyError, TypeError):  # a version of Numba without that switch: the same code, slower
        made = njit(cache=True)(function)
    return made


def compiled(function: Function) -> Function:
    """Compile a function that may allocate."""
    njit: Any = numba.njit
    made: Function = njit(cache=True)(function)
    return made
