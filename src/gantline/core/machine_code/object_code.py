"""From LLVM code to an object file with one entry, and into memory, by llvmlite alone."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from gantline.core.machine_code.slots import READ

#: how much longer code may become by a call that is written out: LLVM's own 225 takes half as long again, and runs no faster
_INLINED = 125
_NRT = ("NRT_", "numba_", "Py")  # what code calls that only Numba has
_SCALARS = {"int64": "q", "float64": "d", "bool": "?", "int32": "i", "float32": "f", "uint64": "Q", "uint8": "B", "int8": "b", "none": ""}
ENTRY = "gantline_entry"


def make_object(parts: Sequence[bytes], entry: str) -> bytes:
    """Link code and optimise it as a whole; only the function of that name can be called from outside."""
    return machine().emit_object(_optimised(parts, entry))  # type: ignore[no-any-return]


def make_entry(parts: Sequence[bytes], name: str, kind: Any) -> bytes | None:
    """The same behind an entry that takes its arguments from slots; None: it takes or calls what only Numba has."""
    text = _entry(name, kind)
    module = _optimised([*parts, llvm.parse_assembly(text).as_bitcode()], ENTRY) if text else None
    if module is None or any(one.name.startswith(_NRT) for one in module.functions if one.is_declaration):
        return None
    return machine().emit_object(module)  # type: ignore[no-any-return]


def load(code: bytes) -> Any:
    """Put an object file into memory, where it stays as long as what this returns."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine


def machine() -> Any:
    """How LLVM writes code for this processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="default", codemodel="jitdefault", jit=True)


def _optimised(parts: Sequence[bytes], entry: str) -> Any:
    processor = machine()
    module, *others = map(llvm.parse_bitcode, parts)
    for other in others:
        module.link_in(other)
    for one in module.functions:
        if not one.is_declaration and one.name != entry:
            one.linkage = llvm.Linkage.internal
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.inlining_threshold = _INLINED
    builder = llvm.create_pass_builder(processor, tuning)
    builder.getModulePassManager().run(module, builder)
    if any(one.name == "NRT_incref" for one in module.functions):
        counting = llvm.create_new_module_pass_manager()
        counting.add_refprune_pass()
        counting.run(module, builder)
        builder.getModulePassManager().run(module, builder)
    return module


def returned_numbers(kind: Any) -> list[tuple[int, str]] | None:
    """Offsets and kinds of the numbers in a result; None: it holds something else."""
    parts = getattr(kind, "types", None) or ([] if str(kind) == "none" else [kind])
    found, at = [], 0
    for part in parts:
        if not _SCALARS.get(str(part)):
            return None
        size = ctypes.sizeof(READ[_SCALARS[str(part)]])
        at = (at + size - 1) // size * size
        found.append((at, _SCALARS[str(part)]))
        at += size
    return found


def _entry(name: str, kind: Any) -> str:
    """A function (result, slots) that calls the code with the arguments that lie in the slots; empty: they cannot."""
    module = ir.Module()
    word, pointer = ir.IntType(64), ir.IntType(64).as_pointer()
    callee = ir.Function(module, kind, name)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [ir.IntType(8).as_pointer(), pointer]), ENTRY)
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
            return ""
    build.ret(build.call(callee, given))
    return str(module)
