"""Arguments of stored code: every number and every array is a few 64-bit slots of one row, every result a few bytes."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable
from itertools import accumulate
from struct import Struct
from threading import Lock
from typing import Any, TypeAlias

import numpy as np

#: scalars that go into slots, and the Python types that Numba takes for them
_ACCEPTED: dict[str, tuple[type, ...]] = {"q": (int, np.int64), "d": (float, np.float64), "?": (bool, np.bool_)}

#: by dimensions: size, item size, address, shape and strides of an array
_WRITERS = [Struct(f"={3 + 2 * ndim}q") for ndim in range(33)]

#: machine code: where the result goes, and the slots; its status. And what Python calls: the arguments in, the result out
Code = Callable[[ctypes.c_void_p, ctypes.c_void_p], int]
Call = Callable[[tuple[Any, ...]], Any]

#: an argument in slots: what it is, its first slot, and for a tuple what is in it
Place: TypeAlias = "tuple[str, int, list[Place]]"

#: what a call comes back with that was not made for its arguments
OTHER_TYPES = object()
_NOTHING = object()

READ: dict[str, Any] = {
    "q": ctypes.c_int64, "d": ctypes.c_double, "?": ctypes.c_bool, "i": ctypes.c_int32, "f": ctypes.c_float,
    "Q": ctypes.c_uint64, "B": ctypes.c_uint8, "b": ctypes.c_int8,
}  # fmt: skip


class Entry:
    """The machine code of a kernel for arguments of some types, and the slots that its arguments go into.

    Most calls come with the bundles and arrays of the last one: what is the same object stays in its slots, and is held until `let_go`.
    """

    def __init__(self, key: str, address: int, returns: list[tuple[int, str]], engine: Any) -> None:
        codes: list[str] = json.loads(key)
        starts = iter(list(accumulate(map(_slots_of, codes), initial=0)))
        self._places = list(_places(iter(codes), starts))
        self._last: list[object] = [_NOTHING] * len(self._places)
        self._slots = np.zeros(sum(map(_slots_of, codes)) + 1, dtype=np.int64)
        self._ints: Any = memoryview(self._slots.data)
        self._floats: Any = memoryview(self._slots.view(np.float64).data)
        self._result = ctypes.create_string_buffer(256)
        self._values = [READ[kind].from_buffer(self._result, offset) for offset, kind in returns]
        self._into, self._from = ctypes.c_void_p(ctypes.addressof(self._result)), ctypes.c_void_p(self._slots.ctypes.data)
        self._lock = Lock()
        self._engine = engine  # keeps the code in memory
        self._address = address
        self._run = self._code(ctypes.PYFUNCTYPE)
        _ENTRIES.append(self)

    def let_python_go_on(self) -> None:
        """Release the GIL while the code runs, from now on."""
        self._run = self._code(ctypes.CFUNCTYPE)

    def _code(self, convention: Any) -> Code:
        return convention(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self._address)  # type: ignore[no-any-return]

    def call(self, args: tuple[Any, ...]) -> Any:
        """Run the code on these arguments, one thread at a time; `OTHER_TYPES`: it is not made for them."""
        last, places = self._last, self._places
        if len(args) != len(places):
            return OTHER_TYPES
        with self._lock:
            for at, value in enumerate(args):
                if value is not last[at]:
                    last[at] = _NOTHING
                    if not self._write(places[at], value):
                        return OTHER_TYPES
                    last[at] = value
            status = self._run(self._into, self._from)
            if status:
                return _failed(status)
            values = self._values
            if len(values) == 1:
                return values[0].value
            return tuple([value.value for value in values]) if values else None

    def _write(self, place: Place, value: Any) -> bool:
        """Write one argument into its slots; False: it is of another type."""
        code, start, inside = place
        if code[0] == "a":
            if type(value) is not np.ndarray or _array_code(value) != code:
                return False
            write = _WRITERS[value.ndim].pack_into
            write(self._ints, 8 * start + 16, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides)
        elif code[0] == "t":
            if not isinstance(value, tuple) or _tuple_code(value) != code:
                return False
            return all(map(self._write, inside, value))
        elif type(value) not in _ACCEPTED[code]:
            return False
        elif code == "d":
            self._floats[start] = value
        else:
            self._ints[start] = value
        return True

    def let_go(self) -> None:
        """Hold no argument any more."""
        with self._lock:
            self._last[:] = [_NOTHING] * len(self._last)


_ENTRIES: list[Entry] = []


def let_go() -> None:
    """Release the arguments of all last calls, so that a finished run does not stay in memory."""
    for entry in _ENTRIES:
        entry.let_go()


def _failed(status: int) -> None:
    if status != -2:  # that is None
        raise ArithmeticError("a compiled kernel divided by zero, or left an array")


def _places(codes: Iterable[str], starts: Iterable[int]) -> Iterable[Place]:
    """The arguments; both are in the order in which tuples are written out."""
    for code, start in zip(codes, starts):
        if code[0] == "t":
            members = int(code[1 : code.index(" ")])
            rest = _places(codes, starts)
            yield code, start, [next(iter(rest)) for _ in range(members)]
        else:
            yield code, start, []


def describe(args: tuple[Any, ...]) -> str:
    """The types of the arguments as text; empty: some cannot be passed in slots."""
    codes = list(_codes(args))
    return json.dumps(codes) if all(codes) else ""


def _codes(args: Iterable[Any]) -> Iterable[str]:
    """What the arguments are, every (named) tuple before its members; empty for what is not passed in slots."""
    for arg in args:
        if isinstance(arg, tuple):
            yield _tuple_code(arg)
            yield from _codes(arg)
        elif type(arg) is np.ndarray:
            yield _array_code(arg) if arg.dtype.kind in "iufb" else ""
        else:
            yield next((code for code, kinds in _ACCEPTED.items() if type(arg) in kinds), "")


def _tuple_code(value: tuple[Any, ...]) -> str:
    """Its class with the names of its fields: code that was made for others may read the wrong ones."""
    key = (type(value), len(value))
    code = _KNOWN.get(key)
    if code is None:
        kind, fields = type(value), ",".join(getattr(type(value), "_fields", ()))
        code = _KNOWN[key] = f"t{len(value)} {kind.__module__}.{kind.__qualname__}({fields})"
    return code


def _array_code(value: np.ndarray[Any, Any]) -> str:
    """Its type: number, dimensions, layout, whether it may be written to and lies where it should."""
    flags = value.flags
    key = (value.dtype, value.ndim, flags.num)
    code = _KNOWN.get(key)
    if code is None:
        layout = "C" if flags.c_contiguous else ("F" if flags.f_contiguous else "A")
        code = _KNOWN[key] = f"a{value.dtype.char}{value.ndim}{layout}{int(flags.writeable)}{int(flags.aligned)}"
    return code


_KNOWN: dict[Any, str] = {}


def _slots_of(code: str) -> int:
    """Slots of one argument: Numba takes an array as two owners, size, item size, address, shape and strides."""
    return 5 + 2 * int(code[2]) if code[0] == "a" else int(code[0] != "t")
