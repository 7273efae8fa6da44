"""From what Numba has compiled to an object file with one entry."""

from __future__ import annotations

import ctypes
from typing import Any

from gantline._machine_code.slots import READ

_NRT = ("NRT_", "numba_", "Py")  # what generated code may not need of a runtime that is not there
_ENTRY = "gantline_entry"
#: how much longer code may become by a call that is written out: LLVM's own 225 takes half as long again, and runs no faster
_INLINED = 125
_SCALARS = {"int64": "q", "float64": "d", "bool": "?", "int32": "i", "float32": "f", "uint64": "Q", "uint8": "B", "int8": "b", "none": ""}


def target_machine() -> Any:
    import llvmlite.binding as llvm

    target = llvm.Target.from_triple(llvm.get_process_triple())
    features = llvm.get_host_cpu_features().flatten()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="default", codemodel="jitdefault", jit=True
    )


def object_code(made: Any) -> tuple[bytes, list[tuple[int, str]]] | None:
    """Numba's code and an entry that takes its arguments from slots, as one object file; and how to read the result."""
    import llvmlite.binding as llvm
    from llvmlite import ir

    context, signature, name = made.target_context, made.signature, made.fndesc.llvm_func_name
    returns = _returns(signature.return_type)
    if returns is None:
        return None
    module = made.library._get_module_for_linking().clone()
    kind = context.call_conv.get_function_type(signature.return_type, signature.args)
    module.link_in(llvm.parse_assembly(_entry(ir, name, kind)))
    for function in module.functions:
        if not function.is_declaration and function.name != _ENTRY:
            function.linkage = llvm.Linkage.internal
    machine = target_machine()
    _optimise(module, machine)
    unknown = [f.name for f in module.functions if f.is_declaration and f.name.startswith(_NRT)]
    if unknown:
        return None
    return machine.emit_object(module), returns


def _optimise(module: Any, machine: Any) -> None:
    import llvmlite.binding as llvm

    if hasattr(llvm, "create_pass_builder"):
        tuning = llvm.create_pipeline_tuning_options(speed_level=3)
        tuning.inlining_threshold = _INLINED
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
    else:  # before llvmlite 0.44
        older: Any = llvm
        settings, passes = older.create_pass_manager_builder(), older.create_module_pass_manager()
        settings.opt_level, settings.loop_vectorize, settings.inlining_threshold = 3, True, _INLINED
        machine.add_analysis_passes(passes)
        settings.populate(passes)
        passes.run(module)


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
        size = ctypes.sizeof(READ[_SCALARS[str(part)]])
        at = (at + size - 1) // size * size
        found.append((at, _SCALARS[str(part)]))
        at += size
    return found


def _entry(ir: Any, name: str, kind: Any) -> str:
    """A function (result, slots) that calls the code with the arguments that lie in the slots."""
    module = ir.Module()
    word, pointer = ir.IntType(64), ir.IntType(64).as_pointer()
    callee = ir.Function(module, kind, name)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [ir.IntType(8).as_pointer(), pointer]), _ENTRY)
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
