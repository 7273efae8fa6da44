"""How Numba compiles the functions that kernels call: to LLVM's intermediate language, and no further.

Numba optimises every function together with all that it calls and makes machine code of it, so what lies five calls deep is optimised
and compiled five times, and once more inside the stored entry. Here functions stay in the intermediate language until an entry is made.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import llvmlite.binding as llvm
import numba
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_result
from numba.core.environment import lookup_environment
from numba.np import arrayobj

from gantline._machine_code.front_end import is_known
from gantline._machine_code.lean_code import LeanLowering


class LateLibrary(JITCodeLibrary):
    """Code that is linked into other code and never runs by itself.

    Functions of ours that it calls are linked only when the whole is needed, so that nothing is linked once per level of calls.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._callees: dict[Any, None] = {}  # in order
        self._whole: Any = None

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            _prepare(self, getattr(library, "_reload_init", ()))
            if isinstance(library, LateLibrary):
                self._callees[library] = None
            else:
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        if self._whole is None:
            self._ensure_finalized()
            own = super()._get_module_for_linking()
            self._whole = own.clone() if self._callees else own
            for library in self._all_callees():
                self._whole.link_in(super(LateLibrary, library)._get_module_for_linking(), preserve=True)
        return self._whole

    def _all_callees(self) -> list[Any]:
        """The libraries of all functions that this one calls, and of those that they call."""
        found = dict.fromkeys(self._callees)
        waiting = list(found)
        while waiting:
            new = [one for one in waiting.pop()._callees if one not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        return list(found)


class QuickFlags(Flags):
    """Numba's switches, compared by what was set: Numba compares them a hundred thousand times, and would read all fifty each time."""

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if isinstance(other, QuickFlags) else super().__eq__(other)


class LateCompiler(Compiler):
    """Numba's pipeline without its last step."""

    from_zero = False
    closures = True

    def __init__(self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any) -> None:
        flags.no_compile = True
        super().__init__(typingctx, targetctx, library, args, return_type, QuickFlags(flags), locals)

    def compile_extra(self, func: Any) -> Any:
        self.state.library = LateLibrary(self.state.targetctx.codegen(), f"{func.__module__}.{func.__qualname__}")
        self.closures = any(isinstance(constant, CodeType) for constant in func.__code__.co_consts)
        with _indices(self.from_zero):
            made = super().compile_extra(func)._replace(entry_point=_callable_stand_in())
        self.state.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made

    def define_pipelines(self) -> list[Any]:
        """Numba's, without looking for closures and for sums of arrays in a function that cannot have any."""
        found = super().define_pipelines()
        needless = {_CLOSURES} if not self.closures else set()
        if not self.state.flags.nrt:
            needless.add(_ARRAY_SUMS)
        lean = is_known(numba.__version__) and not self.state.flags.nrt and not self.state.flags.debuginfo
        for steps in found:
            steps.passes = [one for one in steps.passes if one[0].name() not in needless]
            steps.passes = [(LeanLowering, one[1]) if lean and one[0].name() == "native_lowering" else one for one in steps.passes]
            steps.finalize()
        return list(found)


class FromZeroCompiler(LateCompiler):
    """The same for functions that never count from the end of an array."""

    from_zero = True


@contextmanager
def _indices(from_zero: bool) -> Iterator[None]:
    """Use this handling of indices meanwhile. Functions that a function calls are compiled within it, each in its own way."""
    before = _WRAPPED and getattr(arrayobj, _FIX)
    if before is not None:
        setattr(arrayobj, _FIX, _as_it_is if from_zero else _WRAPPED)
    try:
        yield
    finally:
        if before is not None:
            setattr(arrayobj, _FIX, before)


def _as_it_is(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
    """Replaces the function that adds the length to an index below zero."""
    return context.cast(builder, index, kind, types.intp if kind.signed else types.uintp)


_CLOSURES, _ARRAY_SUMS = "inline_closure_likes", "nopython_rewrites"
_FIX = "fix_integer_index"
_WRAPPED: Any = getattr(arrayobj, _FIX, None) if is_known(numba.__version__) else None


def _prepare(library: Any, steps: Any) -> None:
    """Register what must be done before stored code can run; older versions of Numba lack this."""
    getattr(library, "_reload_init", set()).update(steps)


def _callable_stand_in() -> Any:
    """A stand-in for the address by which Numba identifies a function, of the kind that Python could call."""
    return object().__dir__


def take_apart(made: Any) -> Any:
    """A result in pieces that can be written to a file."""
    made.library._ensure_finalized()
    made.fndesc.typemap = made.fndesc.calltypes = None
    code = made.library._get_module_for_linking().as_bitcode()
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
        entry_point=_callable_stand_in(),
        fndesc=fndesc,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload_init,
    )


def give_environments(made: Any) -> None:
    """Write the addresses of Python objects that linked functions need, such as for a message, into code that is about to run."""
    for variable in made.library._final_module.global_variables:
        if variable.name.startswith(_ENVIRONMENT):
            environment = lookup_environment(variable.name)
            if environment is not None:
                made.library.codegen.set_env(variable.name, environment)


_ENVIRONMENT = "_ZN08NumbaEnv"
