"""Arguments of stored code: every number and every array is a few 64-bit slots of one row, every result a few bytes."""

from __future__ import annotations

import ctypes
import json
import re
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate, chain
from struct import Struct
from threading import Lock
from typing import Any, cast

import numpy as np

#: scalars that go into slots, and the Python types that Numba takes for them
_ACCEPTED: dict[str, tuple[type, ...]] = {"q": (int, np.int64), "d": (float, np.float64), "?": (bool, np.bool_)}

#: by dimensions: size, item size, address, shape and strides of an array
_WRITERS = [Struct(f"={3 + 2 * ndim}q") for ndim in range(33)]

#: the same as a condition on an argument that is of another type
_UNFIT = {
    "q": "type({0}) is not int and type({0}) is not int64",
    "d": "type({0}) is not float and type({0}) is not float64",
    "?": "type({0}) is not bool and type({0}) is not bool_",
}

#: machine code: where the result goes, and the slots; its status. And what Python calls: the arguments in, the result out
Code = Callable[[ctypes.c_void_p, ctypes.c_void_p], int]
Call = Callable[[tuple[Any, ...]], Any]

#: what a call comes back with that was not made for its arguments
OTHER_TYPES = object()
_NO_BUNDLE = object()

READ: dict[str, Any] = {
    "q": ctypes.c_int64, "d": ctypes.c_double, "?": ctypes.c_bool, "i": ctypes.c_int32, "f": ctypes.c_float,
    "Q": ctypes.c_uint64, "B": ctypes.c_uint8, "b": ctypes.c_int8,
}  # fmt: skip


class _ArrayStruct(ctypes.Structure):
    """NumPy's array interface in C, up to the address; the dictionary with the same content takes ten times as long."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("dimensions", ctypes.c_int),
        ("kind", ctypes.c_char),
        ("size", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_size_t),
    )


_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


class Entry:
    """One specialisation: its machine code, and the slots that its arguments go into.

    Most calls come with the bundles and arrays of the last one, so their addresses stay in the slots. Bundles are held until `let_go`; a
    loose array that is freed is forgotten at once, because another may get its identity.
    """

    def __init__(self, key: str, address: int, returns: list[tuple[int, str]], engine: Any) -> None:
        codes: list[str] = json.loads(key)
        self._codes = [code for code in codes if code[0] != "t"]
        self._starts = [0, *accumulate(map(_slots_of, self._codes))]
        self._arguments = _first_leaves(codes)
        self._marks = _marks_of(codes)
        self._held: list[object] = [_NO_BUNDLE] * len(self._arguments)  # by argument: the bundle whose numbers are in the slots
        self._known = [0] * len(self._codes)  # identities of loose arrays whose addresses are in the slots
        self._watch: list[object] = [None] * len(self._codes)
        self._forget = [partial(self._forget_one, leaf) for leaf in range(len(self._codes))]
        self._slots = np.zeros(self._starts[-1] + 1, dtype=np.int64)
        self._ints: Any = memoryview(self._slots.data)
        self._floats: Any = memoryview(self._slots.view(np.float64).data)
        self._result = ctypes.create_string_buffer(256)
        self._values = [READ[kind].from_buffer(self._result, offset) for offset, kind in returns]
        self._lock = Lock()
        self._engine = engine  # keeps the code in memory
        self._address = address
        self.call = self.calling(self._code(ctypes.PYFUNCTYPE))

    def let_python_go_on(self) -> None:
        """Release the GIL while the code runs, from now on."""
        self.call = self.calling(self._code(ctypes.CFUNCTYPE))

    def _code(self, convention: Any) -> Code:
        return convention(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(self._address)  # type: ignore[no-any-return]

    def calling(self, run: Code) -> Call:
        """A function that runs code on the arguments that it is given; `OTHER_TYPES`: the code is not made for them.

        One thread at a time, because the slots are shared. Its source is written here, argument by argument: many kernels take less time
        than a loop over what is known of their arguments.
        """
        names = [f"a{at}" for at in range(len(self._arguments))]
        answer = ("None", "values[0].value", "tuple([value.value for value in values])")[min(len(self._values), 2)]
        lines = [
            "def call(args):",
            f" if len(args) != {len(names)}: return OTHER_TYPES",
            f" [{', '.join(names)}] = args",
            " with lock:",
            *chain.from_iterable(map(self._statements, range(len(names)), names)),
            "  status = run(into, slots)",
            f"  return {answer} if status == 0 else failed(status)",
        ]
        known: dict[str, object] = {
            "held": self._held,
            "known": self._known,
            "load_bundle": self._load_bundle,
            "load_array": self._load_array,
            "ints": self._ints,
            "floats": self._floats,
            "lock": self._lock,
            "run": run,
            "into": ctypes.c_void_p(ctypes.addressof(self._result)),
            "slots": ctypes.c_void_p(self._slots.ctypes.data),
            "values": self._values,
            "failed": _failed,
            "OTHER_TYPES": OTHER_TYPES,
            "int64": np.int64,
            "float64": np.float64,
            "bool_": np.bool_,
        }
        exec("\n".join(lines), known)
        return cast(Call, known["call"])

    def _statements(self, at: int, name: str) -> list[str]:
        """What writes one argument into its slots, or finds that it is of another type."""
        leaf, is_tuple = self._arguments[at]
        if is_tuple:
            return [f"  if {name} is not held[{at}] and not load_bundle({at}, {name}): return OTHER_TYPES"]
        code = self._codes[leaf]
        if code[0] == "a":
            return [f"  if id({name}) != known[{leaf}] and not load_array({leaf}, {name}): return OTHER_TYPES"]
        numbers = "floats" if code == "d" else "ints"
        return [f"  if {_UNFIT[code].format(name)}: return OTHER_TYPES", f"  {numbers}[{self._starts[leaf]}] = {name}"]

    def _load_bundle(self, at: int, bundle: object) -> bool:
        """Write the slots of one bundle; False: it is of another type."""
        _HOLDING[id(self)] = self
        self._held[at] = _NO_BUNDLE
        leaves, (first, _) = _leaves((bundle,)), self._arguments[at]
        if [leaf.code for leaf in leaves if type(leaf) is _Mark] != self._marks[at]:
            return False
        for leaf, value in enumerate([value for value in leaves if type(value) is not _Mark], first):
            if not self._write(leaf, value):
                return False
        self._held[at] = bundle
        return True

    def _load_array(self, leaf: int, array: object) -> bool:
        """Write the slots of a loose array; False: it is of another type."""
        self._known[leaf] = 0
        if not self._write(leaf, array):
            return False
        self._watch[leaf] = weakref.ref(array, self._forget[leaf])
        self._known[leaf] = id(array)
        return True

    def _write(self, leaf: int, value: Any) -> bool:
        """Write one argument into its slots; False: it is of another type."""
        code, start = self._codes[leaf], self._starts[leaf]
        if code == "d":
            if type(value) is not float and type(value) is not np.float64:
                return False
            self._floats[start] = value
        elif code[0] != "a":
            if type(value) not in _ACCEPTED[code]:
                return False
            self._ints[start] = value
        else:
            if type(value) is not np.ndarray or _array_code(value) != code:
                return False
            address = _ArrayStruct.from_address(_pointer(value.__array_struct__, None)).data
            write = _WRITERS[value.ndim].pack_into
            write(self._ints, 8 * start + 16, value.size, value.itemsize, address, *value.shape, *value.strides)
        return True

    def _forget_one(self, leaf: int, _: object) -> None:
        self._known[leaf] = 0

    def let_go(self) -> None:
        """Hold no bundle any more."""
        with self._lock:
            self._held[:] = [_NO_BUNDLE] * len(self._held)


def _failed(status: int) -> None:
    if status != -2:  # that is None
        raise ArithmeticError("a compiled kernel divided by zero, or left an array")


_HOLDING: dict[int, Entry] = {}  # entries that hold the bundles of their last call, by identity


def let_go() -> None:
    """Release the bundles of all last calls, so that a finished run does not stay in memory."""
    while _HOLDING:
        _HOLDING.popitem()[1].let_go()


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
        self.code = _TUPLE_CODES.get((type(value), len(value))) or _tuple_code(type(value), len(value))


def _tuple_code(kind: type, size: int) -> str:
    """Its class with the names of its fields: code that was made for others may read the wrong ones."""
    fields = ",".join(getattr(kind, "_fields", ()))
    code = _TUPLE_CODES[kind, size] = f"t{size} {kind.__module__}.{kind.__qualname__}({fields})"
    return code


_TUPLE_CODES: dict[tuple[type, int], str] = {}


def _first_leaves(codes: list[str]) -> list[tuple[int, bool]]:
    """For every argument its first leaf and whether it is a tuple."""
    found, leaf, at = [], 0, 0
    while at < len(codes):
        inside = _size(codes[at])
        found.append((leaf, inside >= 0))
        leaf += inside < 0
        at += 1
        while inside > 0:
            within = _size(codes[at])
            leaf += within < 0
            inside += max(within, 0) - 1
            at += 1
    return found


def _marks_of(codes: list[str]) -> list[list[str]]:
    """For every argument the codes of the tuples in it, itself first; none: it is no tuple."""
    found: list[list[str]] = []
    left = 0  # leaves and tuples that are still to come of the present argument
    for code in codes:
        inside = _size(code)
        if left == 0:
            found.append([])
            left = 1
        if inside >= 0:
            found[-1].append(code)
        left += max(inside, 0) - 1
    return found


def _size(code: str) -> int:
    """Members of a tuple; below zero: it is none."""
    return int(re.match(r"t(\d+)", code)[1]) if code[0] == "t" else -1  # type: ignore[index]


def _array_code(value: np.ndarray[Any, Any]) -> str:
    """Its type: number, dimensions, layout, whether it may be written to and lies where it should."""
    key = (value.dtype, value.ndim, value.flags.num)
    code = _ARRAY_CODES.get(key)
    if code is None:
        flags = value.flags
        layout = "C" if flags.c_contiguous else ("F" if flags.f_contiguous else "A")
        code = _ARRAY_CODES[key] = f"a{value.dtype.char}{value.ndim}{layout}{int(flags.writeable)}{int(flags.aligned)}"
    return code


_ARRAY_CODES: dict[Any, str] = {}


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
