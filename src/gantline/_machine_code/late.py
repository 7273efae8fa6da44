"""How Numba compiles what kernels are made of: to LLVM's language, and no further.

Numba optimises every function together with all that it calls and makes machine code of it, so what lies five calls deep is optimised
and compiled five times, and once more inside the stored entry. Here functions stay as they were written down until an entry is made.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_result
from numba.core.environment import lookup_environment
from numba.np import arrayobj


class LateLibrary(JITCodeLibrary):
    """Code that is linked into other code and never runs by itself."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        seen = set()
        for library in self._linking_libraries:
            if library not in seen:
                seen.add(library)
                _prepare(self, getattr(library, "_reload_init", ()))
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class QuickFlags(Flags):
    """Numba's switches, compared by what was set: Numba asks a hundred thousand times, and would read all fifty each time."""

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, QuickFlags) else super().__eq__(other)


class LateCompiler(Compiler):
    """Numba's pipeline without its last step."""

    from_zero = False

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any) -> None:
        flags.no_compile = True
        super().__init__(typingctx, targetctx, library, args, return_type, QuickFlags(flags), locals)

    def compile_extra(self, func: Any) -> Any:
        self.state.library = LateLibrary(self.state.targetctx.codegen(), f"{func.__module__}.{func.__qualname__}")
        with _indices(self.from_zero):
            made = super().compile_extra(func)._replace(entry_point=_badge())
        self.state.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made


class FromZeroCompiler(LateCompiler):
    """The same for functions that never count from the end of an array."""

    from_zero = True


@contextmanager
def _indices(from_zero: bool) -> Iterator[None]:
    """How indices are written down meanwhile. Functions that a function calls are compiled within it, each in its own way."""
    before = getattr(arrayobj, _FIX, None)
    if before is not None:
        setattr(arrayobj, _FIX, _as_it_is if from_zero else _WRAPPED)
    try:
        yield
    finally:
        if before is not None:
            setattr(arrayobj, _FIX, before)


def _as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """In place of what adds the length to an index below zero."""
    return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)


_FIX = "fix_integer_index"
_WRAPPED: Any = getattr(arrayobj, _FIX, None)


def _prepare(library: Any, steps: Any) -> None:
    """Remember what must be done before code that was stored can run; older versions of Numba know no such thing."""
    getattr(library, "_reload_init", set()).update(steps)


def _badge() -> Any:
    """What Numba knows a function by, which must be of the kind that Python could call."""
    return object().__dir__


def take_apart(made: Any) -> Any:
    """A result in pieces that can be written to a file."""
    made.library._ensure_finalized()
    made.fndesc.typemap = made.fndesc.calltypes = None
    code = made.library._final_module.as_bitcode()
    return made.library.name, code, made.fndesc, made.environment, made.signature, made.reload_init


def put_together(target_context: Any, pieces: Any) -> Any:
    """The same from its pieces."""
    name, code, fndesc, environment, signature, reload_init = pieces
    for initialise in reload_init:
        initialise()
    library = LateLibrary(target_context.codegen(), name)
    library._final_module = llvm.parse_bitcode(code)
    _prepare(library, reload_init)
    library.finalize()
    return compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        library=library,
        environment=environment,
        entry_point=_badge(),
        fndesc=fndesc,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload_init,
    )


def give_environments(made: Any) -> None:
    """Tell code that is about to run where the Python objects are that functions linked into it need, such as for a message."""
    for variable in made.library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                made.library.codegen.set_env(variable.name, environment)


_ENVIRONMENT = "_ZN08NumbaEnv"
