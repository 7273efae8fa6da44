"""Compiled kernels kept as machine code, and called without Numba's front end.

Importing Numba and preparing the first call of a cached function costs about 0.6 s, whatever the function does. So the first process that
compiles a kernel also stores its object code, with an entry that reads all arguments from one row of 64-bit slots; later processes load it
with llvmlite and never import Numba. The code is Numba's own, so results are the same to the bit. A kernel whose arguments or code this
cannot express (allocation, strings) is simply called through Numba.

Stored code belongs to one machine type: the file names carry the processor, its features and the versions of Numba and llvmlite.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

_NRT = ("NRT_", "numba_", "Py")  # what generated code may not need of a runtime that is not there
_SCALARS = {"int64": "q", "float64": "d", "bool": "?", "int32": "i", "float32": "f", "uint64": "Q", "uint8": "B", "int8": "b", "none": ""}


class Kernel:
    """A function that is compiled when it is first called, by Numba or from stored machine code."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any], storable: bool) -> None:
        self.function = function
        self.options = options
        self.py_func = function
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        self._storable = storable
        self._dispatcher: Any = None
        self._entries: dict[str, _Entry] = {}
        self._last: _Entry | None = None

    @property
    def dispatcher(self) -> Any:
        """Numba's own object for this function."""
        if self._dispatcher is None:
            self._dispatcher = self.compiler(cache=True)
        return self._dispatcher

    def compiler(self, cache: bool) -> Any:
        """A new one, with or without Numba's own cache on disk."""
        import numba

        options = dict(self.options)
        try:
            return numba.njit(cache=cache, **options)(self.function)
        except (KeyError, TypeError):  # a version of Numba without one of the switches: the same code, slower
            options.pop("_nrt", None)
            return numba.njit(cache=cache, **options)(self.function)

    @property
    def _numba_type_(self) -> Any:
        """How Numba sees it when another compiled function calls it."""
        return self.dispatcher._numba_type_

    def __call__(self, *args: Any) -> Any:
        if self._dispatcher is not None:  # Numba is here already, so nothing would be saved
            return self._through_numba(args)
        entry = self._last
        if entry is not None and entry.load(args):
            return entry.call()
        return self._find(args)

    def _find(self, args: tuple[Any, ...]) -> Any:
        """Look for the code that these arguments need: loaded, stored, or compiled now."""
        key = _describe(args) if self._storable else ""
        entry = self._entries.get(key) or (read_entry(self, key) if key else None)
        if entry is None or not entry.load(args):
            return self._through_numba(args)
        self._last = self._entries[key] = entry
        return entry.call()

    def _through_numba(self, args: tuple[Any, ...]) -> Any:
        """Call Numba's function; if that compiled something new, store it for the processes to come."""
        known = self.dispatcher.overloads
        before = len(known)
        result = self._dispatcher(*args)
        if len(known) > before and self._storable:
            key = _describe(args)
            if key:
                store_entry(self, key, args)
        return result

    def __reduce__(self) -> Any:
        return _by_name, (self.__module__, self.__qualname__)


def _by_name(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)


class _Entry:
    """One specialisation: its machine code, and the slots that its arguments go into.

    Most calls come with the arrays of the last one, so their addresses stay in the slots; an array that dies is forgotten at once, because
    another may get its identity.
    """

    def __init__(self, key: str, address: int, returns: list[tuple[int, str]], engine: Any) -> None:
        self._codes: list[str] = json.loads(key)
        self._starts = [0, *accumulate(map(_slots_of, self._codes))]
        self._nested = any(code[0] == "t" for code in self._codes)
        self._arrays = [at for at, code in enumerate(self._codes) if code[0] == "a"]
        self._scalars = [(at, self._starts[at], _ACCEPTED[code], code == "d") for at, code in enumerate(self._codes) if code in _ACCEPTED]
        self._marks = [at for at, code in enumerate(self._codes) if code[0] == "t"]
        self._known: tuple[int, ...] | None = None  # identities of the arrays whose addresses are in the slots
        self._watch: list[Any] = []
        self._slots = np.zeros(self._starts[-1] + 1, dtype=np.int64)
        self._ints: Any = memoryview(self._slots.data)
        self._floats: Any = memoryview(self._slots.view(np.float64).data)
        self._result = ctypes.create_string_buffer(256)
        self._returns = returns
        self._engine = engine  # the code lives as long as this
        function = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(address)
        result, slots = ctypes.addressof(self._result), self._slots.ctypes.data
        self._run: Callable[[], int] = lambda: function(result, slots)

    def load(self, args: tuple[Any, ...]) -> bool:
        """Write the arguments into the slots; False: they are of other types than this code is for."""
        leaves = _leaves(args) if self._nested else args
        if len(leaves) != len(self._codes):
            return False
        if any(type(leaves[at]) is not _Mark or leaves[at].code != self._codes[at] for at in self._marks):
            return False
        same = self._known is not None and tuple([id(leaves[at]) for at in self._arrays]) == self._known
        if not same and not self._load_arrays(leaves):
            return False
        for at, start, accepted, is_float in self._scalars:
            value = leaves[at]
            if type(value) not in accepted:
                return False
            (self._floats if is_float else self._ints)[start] = value
        return True

    def _load_arrays(self, leaves: Sequence[Any]) -> bool:
        self._forget()
        ints = self._ints
        for at in self._arrays:
            value = leaves[at]
            if type(value) is not np.ndarray or _array_code(value) != self._codes[at]:
                return False
            start, ndim = self._starts[at], value.ndim
            ints[start + 2], ints[start + 3], ints[start + 4] = value.size, value.itemsize, value.ctypes.data
            for k in range(ndim):
                ints[start + 5 + k], ints[start + 5 + ndim + k] = value.shape[k], value.strides[k]
        self._watch = [weakref.ref(leaves[at], self._forget) for at in self._arrays]
        self._known = tuple([id(leaves[at]) for at in self._arrays])
        return True

    def _forget(self, _: Any = None) -> None:
        self._known = None

    def call(self) -> Any:
        status = self._run()
        if status not in (0, -2):
            raise ArithmeticError("a compiled kernel divided by zero, or left an array")
        if status == -2 or not self._returns:
            return None
        values = tuple(_READ[kind].from_buffer(self._result, offset).value for offset, kind in self._returns)
        return values[0] if len(values) == 1 else values


#: scalars that go into slots, and the Python types that Numba takes for them
_ACCEPTED: dict[str, tuple[type, ...]] = {"q": (int, np.int64), "d": (float, np.float64), "?": (bool, np.bool_)}

_READ: dict[str, Any] = {
    "q": ctypes.c_int64, "d": ctypes.c_double, "?": ctypes.c_bool, "i": ctypes.c_int32, "f": ctypes.c_float,
    "Q": ctypes.c_uint64, "B": ctypes.c_uint8, "b": ctypes.c_int8,
}  # fmt: skip


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


def _describe(args: tuple[Any, ...]) -> str:
    """The types of the arguments as text; empty: some cannot be passed in slots."""
    codes = [_leaf_code(leaf) for leaf in _leaves(args)]
    return json.dumps(codes) if all(codes) else ""


# --- stored code ----------------------------------------------------------------------------------------------------------
def _path(kernel: Kernel, key: str) -> Path | None:
    folder = os.environ.get("NUMBA_CACHE_DIR")
    if not folder:
        return None
    name = f"{kernel.__module__}.{kernel.__qualname__}"
    digest = hashlib.blake2b(f"{_machine()}|{name}|{key}|{sorted(kernel.options.items())}".encode(), digest_size=10).hexdigest()
    return Path(folder) / "machine-code" / f"{name}-{digest}.o"


@cache
def _machine() -> str:
    """What stored code depends on besides its source, which the folder is named after."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return f"{llvm.get_process_triple()}|{llvm.get_host_cpu_name()}|{features}|{version('numba')}|{llvm.llvm_version_info}|1"


def read_entry(kernel: Kernel, key: str) -> _Entry | None:
    """The stored code for these types, loaded; None: there is none, or it is damaged."""
    path = _path(kernel, key)
    if path is None:
        return None
    try:
        head, _, code = path.read_bytes().partition(b"\n")
        told = json.loads(head)
        if hashlib.blake2b(code, digest_size=16).hexdigest() != told["check"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _load(key, code, told["returns"])


def _load(key: str, code: bytes, returns: list[Any]) -> _Entry:
    import llvmlite.binding as llvm

    _prepare()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return _Entry(key, engine.get_function_address("gantline_entry"), [(int(at), str(kind)) for at, kind in returns], engine)


@cache
def _prepare() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def _target_machine() -> Any:
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


def store_entry(kernel: Kernel, key: str, args: tuple[Any, ...]) -> None:
    """Store the code that Numba has just made for these types, where that is possible; this process goes on with Numba's."""
    path = _path(kernel, key)
    if path is None or path.exists():
        return
    try:
        types = tuple(kernel.dispatcher.typeof_pyval(arg) for arg in args)
        made = kernel.dispatcher.overloads[types]
        if not _is_whole(made):  # it came out of Numba's cache, which keeps no code that could be linked
            again = kernel.compiler(cache=False)
            again.compile(types)
            made = again.overloads[types]
        stored = _object_code(made)
    except (AttributeError, RuntimeError, KeyError):  # another version of Numba or llvmlite, or something that slots cannot hold
        return
    if stored is None:
        return
    code, returns = stored
    head = json.dumps({"check": hashlib.blake2b(code, digest_size=16).hexdigest(), "returns": returns}).encode()
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(head + b"\n" + code)
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)


def _is_whole(made: Any) -> bool:
    """Whether the code of the function itself is at hand."""
    name = made.fndesc.llvm_func_name
    return any(function.name == name and not function.is_declaration for function in made.library._final_module.functions)


def _object_code(made: Any) -> tuple[bytes, list[tuple[int, str]]] | None:
    """Numba's code and an entry that takes its arguments from slots, as one object file; and how to read the result."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    context, signature, name = made.target_context, made.signature, made.fndesc.llvm_func_name
    returns = _returns(signature.return_type)
    if returns is None or not _is_whole(made):
        return None
    module = llvm.parse_assembly(str(made.library._final_module))
    for function in module.functions:
        if not function.is_declaration and function.name != name:
            function.linkage = llvm.Linkage.internal
    kind = context.call_conv.get_function_type(signature.return_type, signature.args)
    module.link_in(llvm.parse_assembly(_entry(ir, name, kind)))
    machine = _target_machine()
    tuning = llvm.create_pipeline_tuning_options(speed_level=0)
    builder = llvm.create_pass_builder(machine, tuning)
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    unknown = [f.name for f in module.functions if f.is_declaration and f.name.startswith(_NRT)]
    if unknown:
        return None
    return machine.emit_object(module), returns


def _returns(kind: Any) -> list[tuple[int, str]] | None:
    """Offsets and kinds of the numbers in a result; None: it holds something else."""
    text = str(kind)
    if text in _SCALARS:
        return [(0, _SCALARS[text])] if _SCALARS[text] else []
    parts = getattr(kind, "types", None)
    if not parts:
        return None
    found, at = [], 0
    for part in parts:
        if not _SCALARS.get(str(part)):
            return None
        size = ctypes.sizeof(_READ[_SCALARS[str(part)]])
        at = (at + size - 1) // size * size
        found.append((at, _SCALARS[str(part)]))
        at += size
    return found


def _entry(ir: Any, name: str, kind: Any) -> str:
    """A function (result, slots) that calls the code with the arguments that lie in the slots."""
    module = ir.Module()
    word, pointer = ir.IntType(64), ir.IntType(64).as_pointer()
    callee = ir.Function(module, kind, name)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [ir.IntType(8).as_pointer(), pointer]), "gantline_entry")
    build = ir.IRBuilder(entry.append_basic_block())
    given = [build.bitcast(entry.args[0], kind.args[0]), build.alloca(kind.args[1].pointee)]
    for at, wanted in enumerate(kind.args[2:]):
        slot = build.load(build.gep(entry.args[1], [ir.Constant(word, at)]))
        if isinstance(wanted, ir.PointerType):
            given.append(build.inttoptr(slot, wanted))
        elif isinstance(wanted, ir.DoubleType):
            given.append(build.bitcast(slot, wanted))
        elif isinstance(wanted, ir.IntType):
            given.append(slot if wanted.width == 64 else build.trunc(slot, wanted))
        else:
            raise KeyError(str(wanted))
    build.ret(build.call(callee, given))
    return str(module)
