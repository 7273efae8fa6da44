"""Numba compiles a kernel to LLVM code and no further: a call of another kernel stays a call by its name.

Left alone, Numba would optimise every function together with all that it calls, so that what lies five calls deep is optimised five times.
Importing this module imports Numba.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

import inspect
import os
import pickle
from itertools import count
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import types as _types
from numba.core.codegen import CodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.funcdesc import ExternalFunctionDescriptor
from numba.core.ir import Assign, Expr, SetItem
from numba.core.registry import cpu_target
from numba.core.typed_passes import NoPythonSupportedFeatureValidation
from numba.core.typing.templates import Signature, fold_arguments
from numba.extending import models, register_model, typeof_impl

from gantline.core.constants import ConstantsType
from gantline.core.machine_code.fingerprint import FROM_ZERO, Source
from gantline.core.machine_code.folder import file_of, name_of, read_file, write_file
from gantline.core.machine_code.object_code import load, make_entry, make_object, returned_numbers

types: Any = _types
_CODES: dict[str, Code] = {}  # by symbol
_UNNAMED = count()


class Code(CodeLibrary):
    """The LLVM code of one kernel for arguments of some types, as what calls it links it."""

    def __init__(self, symbol: str) -> None:
        super().__init__(cpu_target.target_context.codegen(), symbol)
        self.text, self.bitcode = "", b""
        self.libraries: list[Any] = []
        self.returns: Any = None
        self.callees: list[str] = []  # symbols

    def add_ir_module(self, ir_module: Any) -> None:
        self.text = str(ir_module)

    def add_linking_library(self, library: Any) -> None:
        if library not in self.libraries:
            self.libraries.append(library)

    def finalize(self) -> None:
        """Nothing to do: it is linked and optimised with what calls it."""

    def get_llvm_str(self) -> str:
        return self.text

    def get_asm_str(self) -> str:
        raise NotImplementedError("a part of other code")

    def get_function(self, name: str) -> Any:
        raise NotImplementedError("a part of other code")

    def complete(self, symbol_of_numba: str, returns: Any) -> None:
        """Give it its own name and what it calls of Numba's; the kernels that it calls stay apart."""
        module = llvm.parse_assembly(self.text)
        module.get_function(symbol_of_numba).name = self.name
        self.callees = [one.name for one in self.libraries if isinstance(one, Code)]
        for library in self.libraries:
            if not isinstance(library, Code):
                _link(module, library)
        for one in module.functions:
            if not one.is_declaration and one.name != self.name:
                one.linkage = llvm.Linkage.internal  # another process may have given the same name to something else
        self.bitcode, self.returns = module.as_bitcode(), returns
        self.text, self.libraries = "", []

    def with_callees(self) -> list[bytes]:
        """Its code and that of all kernels behind it."""
        found, waiting = dict[str, bytes](), [self]
        while waiting:
            code = waiting.pop()
            if code.name not in found:
                found[code.name] = code.bitcode
                waiting += [_CODES[name] for name in code.callees]
        return list(found.values())


def _link(module: Any, library: Any) -> None:
    """Add what Numba brings along, unless nothing of it is called; several libraries may bring the same."""
    _, _, bitcode = library.serialize_using_bitcode()
    theirs = llvm.parse_bitcode(bitcode)
    needed = {one.name for one in module.functions if one.is_declaration}
    if needed.isdisjoint(one.name for one in theirs.functions if not one.is_declaration):
        return
    for one in theirs.functions:
        if not one.is_declaration and one.linkage == llvm.Linkage.external:
            one.linkage = llvm.Linkage.linkonce_odr
    module.link_in(theirs)


@register_pass(mutates_CFG=False, analysis_only=False)
class IndicesFromZero(FunctionPass):
    """Types every index of an array as an unsigned number, so that Numba does not ask whether it lies below zero."""

    _name = "indices_from_zero"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        calltypes = dict(state.calltypes)
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                at = statement.value if isinstance(statement, Assign) else statement
                reads = isinstance(at, Expr) and at.op == "getitem"
                if reads or isinstance(at, SetItem):
                    found = calltypes[at]
                    if isinstance(found.args[0], types.Array):
                        array, index, *value = found.args
                        calltypes[at] = Signature(found.return_type, (array, _unsigned(index), *value), found.recvr)
        state.calltypes = calltypes
        return True


def _unsigned(kind: Any) -> Any:
    if isinstance(kind, types.BaseTuple) and not isinstance(kind, types.BaseNamedTuple):
        return types.Tuple([_unsigned(one) for one in kind])
    return types.uint64 if isinstance(kind, types.Integer) and kind.signed else kind


class FromZeroCompiler(Compiler):
    """Numba's compiler for functions that never count from the end of an array."""

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        passes.add_pass_after(IndicesFromZero, NoPythonSupportedFeatureValidation)
        passes.finalize()
        return [passes]


def code_for(kernel: Source, args: tuple[Any, ...]) -> Code:
    """The code of a kernel for arguments of these types: in memory, stored, or compiled now."""
    known = kernel.codes.get(args)
    if known is None:
        content = f"{kernel.fingerprint}|{type_text(args)}" if kernel.fingerprint else f"{os.getpid()}|{next(_UNNAMED)}"
        symbol = name_of(kernel.full_name, content)
        known = read_code(symbol) if kernel.fingerprint else None
        if known is None:
            known = _CODES[symbol] = _compile(kernel, symbol, args)
            if kernel.fingerprint:
                write_file(file_of(symbol, "bc"), pickle.dumps((known.bitcode, known.returns, known.callees)))
        kernel.codes[args] = known
        fndesc = ExternalFunctionDescriptor(known.name, known.returns, args)
        cpu_target.target_context.insert_user_function(known, fndesc, [known])
        cpu_target.target_context.insert_user_function(known.name, fndesc)
    return known


def read_code(symbol: str) -> Code | None:
    """Stored code, with all that it calls; None: some of that is not there."""
    if symbol in _CODES:
        return _CODES[symbol]
    stored = read_file(file_of(symbol, "bc"))
    if stored is None:
        return None
    code = Code(symbol)
    code.bitcode, code.returns, code.callees = pickle.loads(stored)
    if any(read_code(callee) is None for callee in code.callees):
        return None
    _CODES[symbol] = code
    return code


def _compile(kernel: Source, symbol: str, args: tuple[Any, ...]) -> Code:
    flags: Any = Flags()
    flags.nrt = kernel.options.get("allocates", True)
    flags.error_model = kernel.options.get("error_model", "python")
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    pipeline = FromZeroCompiler if kernel.options.get(FROM_ZERO) else Compiler
    target = cpu_target
    code = Code(symbol)
    with global_compiler_lock:
        made = compile_extra(target.typing_context, target.target_context, kernel.function, args, None, flags, {}, code, pipeline)
        code.complete(made.fndesc.llvm_func_name, made.signature.return_type)
    return code


class KernelType(types.Callable, types.Dummy):  # type: ignore[misc]
    """How Numba sees a kernel in a function that calls it."""

    def __init__(self, kernel: Source) -> None:
        super().__init__(f"kernel {kernel.full_name} at {id(kernel)}")
        self.kernel, self.pysig = kernel, inspect.signature(kernel.function)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        given = fold_arguments(self.pysig, args, kws, lambda *at: _plain(at[2]), lambda *at: _plain(numba.typeof(at[2])), None)
        return Signature(code_for(self.kernel, given).returns, given, None, self.pysig)

    def get_call_signatures(self) -> Any:
        return [], True

    def get_impl_key(self, sig: Any) -> Any:
        return code_for(self.kernel, sig.args)


class WholeType(KernelType):
    """The same in the function through which Python calls it: all that it calls is loaded as one object file."""

    def __init__(self, whole: Whole) -> None:
        super().__init__(whole.kernel)
        self.name = f"whole {whole.kernel.full_name} at {id(whole)}"

    def get_impl_key(self, sig: Any) -> Any:
        code = code_for(self.kernel, sig.args)
        if code.name not in _LOADED:
            path = file_of(code.name, "o")
            stored = read_file(path) if self.kernel.fingerprint else None
            if stored is None:
                stored = make_object(code.with_callees(), code.name)
                if self.kernel.fingerprint:
                    write_file(path, stored)
            _LOADED[code.name] = engine = load(stored)
            llvm.add_symbol(code.name, engine.get_function_address(code.name))
        return code.name


class Whole:
    """Stands for a kernel in the function through which Python calls it."""

    def __init__(self, kernel: Source) -> None:
        self.kernel = kernel


_LOADED: dict[str, Any] = {}  # what keeps machine code in memory, by symbol
register_model(KernelType)(models.OpaqueModel)
register_model(WholeType)(models.OpaqueModel)
typeof_impl.register(ConstantsType)(lambda constants, c: types.Module(constants))
typeof_impl.register(Source)(lambda kernel, c: KernelType(kernel))
typeof_impl.register(Whole)(lambda whole, c: WholeType(whole))


def entry_for(kernel: Source, args: tuple[Any, ...]) -> tuple[list[tuple[int, str]], bytes] | None:
    """How to read the result, and an object file with an entry that takes these arguments from slots; None: that cannot be."""
    kinds = tuple([_plain(numba.typeof(arg)) for arg in args])
    code = code_for(kernel, kinds)
    returns = returned_numbers(code.returns)
    if returns is None:  # arrays that nobody has counted: what Numba makes of them for Python would be freed twice
        raise TypeError(f"{kernel.full_name} returns {code.returns}: Python can call a kernel that returns numbers alone")
    wanted = cpu_target.target_context.call_conv.get_function_type(code.returns, kinds)
    made = make_entry(code.with_callees(), code.name, wanted)
    return None if made is None else (returns, made)


def for_python(kernel: Source) -> Any:
    """A function of Numba's which takes Python's objects and calls the kernel."""
    whole: Any = Whole(kernel)
    return numba.njit(lambda *args: whole(*args))


def _plain(kind: Any) -> Any:
    """The type of any value like it: a constant is a number, and a whole number has 64 bits."""
    kind = types.unliteral(kind)
    return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind


def type_text(kinds: Any) -> str:
    """Types as text; those of named tuples with their fields, which Numba's own text leaves out."""
    words = []
    for kind in kinds:
        of = getattr(kind, "instance_class", None)
        words.append(f"{kind}" if of is None else f"{of.__module__}.{of.__qualname__}{getattr(of, '_fields', '')}")
        words.append(f"({type_text(getattr(kind, 'types', ()))})")
    return ", ".join(words)
