"""Arguments of stored code: every number and every array is a few 64-bit slots of one row, every result a few bytes."""

from __future__ import annotations

import ctypes
import json
import re
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np

#: scalars that go into slots, and the Python types that Numba takes for them
_ACCEPTED: dict[str, tuple[type, ...]] = {"q": (int, np.int64), "d": (float, np.float64), "?": (bool, np.bool_)}

#: what a call comes back with that was not made for its arguments
OTHER_TYPES = object()

READ: dict[str, Any] = {
    "q": ctypes.c_int64, "d": ctypes.c_double, "?": ctypes.c_bool, "i": ctypes.c_int32, "f": ctypes.c_float,
    "Q": ctypes.c_uint64, "B": ctypes.c_uint8, "b": ctypes.c_int8,
}  # fmt: skip


class Entry:
    """One specialisation: its machine code, and the slots that its arguments go into.

    Most calls come with most of the arrays of the last one, so their addresses stay in the slots; an array that dies is forgotten at
    once, because another may get its identity.
    """

    def __init__(self, key: str, address: int, returns: list[tuple[int, str]], engine: Any) -> None:
        codes: list[str] = json.loads(key)
        self._tuples = [code for code in codes if code[0] == "t"]
        self._codes = [code for code in codes if code[0] != "t"]
        self._starts = [0, *accumulate(map(_slots_of, self._codes))]
        self._arrays = [at for at, code in enumerate(self._codes) if code[0] == "a"]
        self._scalars = [(at, self._starts[at], _ACCEPTED[code], code == "d") for at, code in enumerate(self._codes) if code in _ACCEPTED]
        self._bundles, self._deep = _places_of_tuples(codes)
        self._classes: list[type] = []  # of the tuples among the arguments, once seen
        self._known = [0] * len(self._arrays)  # identities of the arrays whose addresses are in the slots
        self._watch: list[Any] = [None] * len(self._arrays)
        self._forget = [partial(self._forget_one, place) for place in range(len(self._arrays))]
        self._slots = np.zeros(self._starts[-1] + 1, dtype=np.int64)
        self._ints: Any = memoryview(self._slots.data)
        self._floats: Any = memoryview(self._slots.view(np.float64).data)
        self._result = ctypes.create_string_buffer(256)
        self._values = [READ[kind].from_buffer(self._result, offset) for offset, kind in returns]
        self._lock = Lock()
        self._engine = engine  # the code lives as long as this
        function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(address)
        result, slots = ctypes.c_void_p(ctypes.addressof(self._result)), ctypes.c_void_p(self._slots.ctypes.data)
        self._run: Callable[[], int] = lambda: function(result, slots)

    def call(self, args: tuple[Any, ...]) -> Any:
        """Run the code on these arguments; `OTHER_TYPES`: it is not made for them. One thread at a time, because the slots are shared."""
        with self._lock:
            return self._answer() if self._load(args) else OTHER_TYPES

    def _load(self, args: tuple[Any, ...]) -> bool:
        """Write the arguments into the slots; False: they are of other types than this code is for."""
        leaves = self._opened(args) if self._bundles else args
        if leaves is None or len(leaves) != len(self._codes):
            return False
        if [id(leaves[at]) for at in self._arrays] != self._known and not self._load_arrays(leaves):
            return False
        for at, start, accepted, is_float in self._scalars:
            value = leaves[at]
            if type(value) not in accepted:
                return False
            (self._floats if is_float else self._ints)[start] = value
        return True

    def _opened(self, args: tuple[Any, ...]) -> list[Any] | None:
        """The arguments with their tuples written out; None: those are other tuples."""
        if len(args) <= self._bundles[-1]:
            return None
        if self._deep or [type(args[at]) for at in self._bundles] != self._classes:
            if [leaf.code for leaf in _leaves(args) if type(leaf) is _Mark] != self._tuples:
                return None
            self._classes = [type(args[at]) for at in self._bundles]
        leaves: list[Any] = []
        for arg in args:
            if isinstance(arg, tuple):
                leaves += [leaf for leaf in _leaves(arg) if type(leaf) is not _Mark] if self._deep else arg
            else:
                leaves.append(arg)
        return leaves

    def _load_arrays(self, leaves: Sequence[Any]) -> bool:
        """Write down where the arrays lie that are not those of the last call."""
        ints, known = self._ints, self._known
        for place, at in enumerate(self._arrays):
            value = leaves[at]
            if id(value) == known[place]:
                continue
            known[place] = 0
            if type(value) is not np.ndarray or _array_code(value) != self._codes[at]:
                return False
            start, ndim = self._starts[at], value.ndim
            ints[start + 2], ints[start + 3], ints[start + 4] = value.size, value.itemsize, value.__array_interface__["data"][0]
            for k in range(ndim):
                ints[start + 5 + k], ints[start + 5 + ndim + k] = value.shape[k], value.strides[k]
            self._watch[place] = weakref.ref(value, self._forget[place])
            known[place] = id(value)
        return True

    def _forget_one(self, place: int, _: Any) -> None:
        self._known[place] = 0

    def _answer(self) -> Any:
        status = self._run()
        if status == 0:
            values = self._values
            if len(values) == 1:
                return values[0].value
            return tuple([value.value for value in values]) if values else None
        if status == -2:
            return None
        raise ArithmeticError("a compiled kernel divided by zero, or left an array")


def _leaves(args: Iterable[Any]) -> list[Any]:
    """The arguments with every (named) tuple written out, behind a mark that says which tuple it is."""
    found: list[Any] = []
    for arg in args:
        if isinstance(arg, tuple):
            found.append(_Mark(arg))
            found += _leaves(arg)
        else:
            found.append(arg)
    return found


class _Mark:
    """Stands for the class of a tuple among its leaves."""

    __slots__ = ("code",)

    def __init__(self, value: tuple[Any, ...]) -> None:
        kind = type(value)
        self.code = f"t{len(value)}{kind.__module__}.{kind.__qualname__}"


def _places_of_tuples(codes: list[str]) -> tuple[list[int], bool]:
    """Which arguments are tuples, and whether one holds another."""
    places, deep, at, place = [], False, 0, 0
    while at < len(codes):
        inside = _size(codes[at])
        if inside >= 0:
            places.append(place)
        at += 1
        while inside > 0:
            within = _size(codes[at])
            deep |= within >= 0
            inside += max(within, 0) - 1
            at += 1
        place += 1
    return places, deep


def _size(code: str) -> int:
    """Members of a tuple; below zero: it is none."""
    return int(re.match(r"t(\d+)", code)[1]) if code[0] == "t" else -1  # type: ignore[index]


def _array_code(value: np.ndarray[Any, Any]) -> str:
    flags = value.flags
    layout = "C" if flags.c_contiguous else ("F" if flags.f_contiguous else "A")
    return f"a{value.dtype.char}{value.ndim}{layout}{int(flags.writeable)}{int(flags.aligned)}"


def _leaf_code(value: Any) -> str:
    """How Numba would type the value; empty: not one of those that are passed in slots."""
    if type(value) is np.ndarray:
        return _array_code(value) if value.dtype.kind in "iufb" else ""
    if type(value) is _Mark:
        return value.code
    return next((code for code, kinds in _ACCEPTED.items() if type(value) in kinds), "")


def _slots_of(code: str) -> int:
    """Slots of one leaf: Numba takes an array as two owners, size, item size, address, shape and strides."""
    return 5 + 2 * int(code[2]) if code[0] == "a" else int(code[0] != "t")


def describe(args: tuple[Any, ...]) -> str:
    """The types of the arguments as text; empty: some cannot be passed in slots."""
    codes = [_leaf_code(leaf) for leaf in _leaves(args)]
    return json.dumps(codes) if all(codes) else ""
