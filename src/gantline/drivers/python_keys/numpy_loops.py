"""The addresses of NumPy's own inner loops, so that compiled code computes the very bits that NumPy would have.

Last digits of powers and logarithms differ from one library to the next, so another one would break ties differently. NumPy's header
for extensions (`ufuncobject.h`) says where a ufunc keeps its loops; everything that Python shows of the ufunc
is compared before an address is used.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np


class _Loops(ctypes.Structure):
    """What follows the head that every Python object has."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_byte)),
    )


@cache
def inner_loop(ufunc: np.ufunc, types: str) -> tuple[int, int] | None:
    """Address and extra argument of the loop for these types (such as ``dd->d``); None: unknown."""
    if sys.implementation.name != "cpython" or types not in ufunc.types:
        return None
    inside = _Loops.from_address(id(ufunc) + object.__basicsize__)
    if (inside.nin, inside.nout, inside.nargs, inside.ntypes) != (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes):
        return None
    if inside.name != ufunc.__name__.encode():
        return None
    place, nargs = ufunc.types.index(types), ufunc.nargs
    numbers = [np.dtype(letter).num for letter in types.replace("->", "")]
    if [inside.types[place * nargs + k] for k in range(nargs)] != numbers or not inside.functions[place]:
        return None
    return int(inside.functions[place] or 0), int(inside.data[place] or 0) if inside.data else 0
