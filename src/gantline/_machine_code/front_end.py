"""Numba's front end with less to do twice, for the same code.

After each of a dozen passes Numba computes which variables are live where, which only generators and object mode read; and for every sum of
two integers it tries dozens of rules for its type. Both together take a sixth of the time that compiling takes. To find the variables of an
instruction it checks every part of it, and it makes callbacks at every call of LLVM. A dozen times for every function it goes through all
its lists of what can be compiled, to see whether anything was added, and after every pass through the whole function, to check for
leftovers that no pass leaves.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

_IN_ARRAYS = ("getitem", "setitem")
BELOW = (0, 69)  # the first version of Numba that these replacements have not been held against: from there on it is left as it is

_LOCK = RLock()
_DEPTH = [0]  # of kernels that are compiled for other kernels


def is_known(version: str) -> bool:
    """Whether that version of Numba may be patched."""
    numbers = version.split(".")[:2]
    return len(numbers) == 2 and all(number.isdigit() for number in numbers) and tuple(map(int, numbers)) < BELOW


@contextmanager
def patched_numba() -> Iterator[None]:
    """Patch Numba while a kernel of ours is compiled; other code is compiled by Numba unchanged."""
    with _LOCK:
        _DEPTH[0] += 1
        before = [(owner, name, vars(owner)[name]) for owner, name, _ in _replacements()] if _DEPTH[0] == 1 else []
        for owner, name, ours in _replacements() if before else ():
            setattr(owner, name, ours)
        try:
            yield
        finally:
            _DEPTH[0] -= 1
            for owner, name, theirs in before:
                setattr(owner, name, theirs)


@cache
def _replacements() -> tuple[tuple[Any, str, Any], ...]:
    """Whose function is replaced, its name, and by what; none with a Numba that is too new, or does not look as expected."""
    import numba

    if not is_known(numba.__version__):
        return ()
    try:
        from llvmlite.ir.instructions import LoadInstr
        from numba.core import compiler_machinery, ir, types
        from numba.core.base import BaseContext
        from numba.core.postproc import PostProcessor, VariableLifetime
        from numba.core.transforms import canonicalize_cfg
        from numba.core.types.functions import BaseFunction
        from numba.np import arrayobj

        mark = arrayobj.mark_positive
        look, resolve, variables = PostProcessor.run, BaseFunction.get_call_type, ir.Inst._rec_list_vars
        machinery: Any = compiler_machinery
        refresh, _ = BaseContext.refresh, machinery.enforce_no_dels
    except (ImportError, AttributeError):  # pragma: no cover - another Numba: left unpatched
        return ()
    numbers = (types.Number, types.Boolean)

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if code.is_generator:
            look(self, emit_dels, extend_lifetimes)
            return
        code.blocks = canonicalize_cfg(code.blocks)
        code.variable_lifetime = VariableLifetime(code.blocks)
        code.block_entry_vars = _WhenAsked(code)
        code.generator_info = None
        if emit_dels:
            self._insert_var_dels(extend_lifetimes=extend_lifetimes)

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        operator = self.typing_key
        if kws or getattr(operator, "__module__", "") != "_operator":
            return resolve(self, context, args, kws)
        of_array = operator.__name__ in _IN_ARRAYS and isinstance(args[0], types.Array)
        if not of_array and not all(isinstance(arg, numbers) for arg in args):
            return resolve(self, context, args, kws)
        found = signatures.get((operator, *args))
        if found is None:
            found = signatures[operator, *args] = resolve(self, context, args, kws)
        return found

    signatures: dict[tuple[object, ...], object] = {}
    without = set[type]()  # kinds of values that hold no variable

    def list_variables(self: Any, value: Any) -> list[Any]:
        kind = type(value)
        if kind is ir.Var:
            return [value]
        if kind in without:
            return []
        if kind is dict or kind is list or kind is tuple:
            found: list[Any] = []
            for part in value.values() if kind is dict else value:
                if type(part) not in without:
                    found += list_variables(self, part)
            return found
        if not isinstance(value, (ir.Var, ir.Inst, list, tuple, dict)):
            without.add(kind)
        return list(variables(self, value))

    def refresh_once(self: Any) -> None:
        typing = self.typing_context
        count = _entries(self), _entries(typing)
        if typing.__dict__.get("_entries_seen") != count:
            refresh(self)
            typing._entries_seen = _entries(self), _entries(typing)

    def mark_positive(builder: object, load: object) -> None:
        if isinstance(load, LoadInstr):  # else the number is known
            mark(builder, load)

    return (
        (arrayobj, "mark_positive", mark_positive),
        (BaseContext, "refresh", refresh_once),
        (machinery, "enforce_no_dels", _trust),
        (ir.Inst, "_rec_list_vars", list_variables),
        (PostProcessor, "run", run),
        (BaseFunction, "get_call_type", get_call_type),
    )


def _entries(context: Any) -> int:
    """The lengths of Numba's lists of what can be compiled."""
    return sum(len(getattr(registry, name)) for registry, loader in context._registries.items() for name in loader.registry_items)


def _trust(code: Any) -> None:
    """Does nothing, instead of checking the whole function after every pass of Numba."""


@contextmanager
def without_call_hooks() -> Iterator[None]:
    """The callbacks that llvmlite makes before and after each call of LLVM are off meanwhile."""
    from llvmlite.binding import ffi

    callbacks = getattr(getattr(ffi.lib, "_lock", None), "_cblist", None)
    if not isinstance(callbacks, list):  # pragma: no cover - another llvmlite
        yield
        return
    before = callbacks[:]
    callbacks.clear()
    try:
        yield
    finally:
        callbacks[:] = before


class _WhenAsked(dict[Any, Any]):
    """The live variables at the beginning of each block, computed on demand."""

    def __init__(self, code: Any) -> None:
        super().__init__()
        self._code = code

    def __missing__(self, block: Any) -> Any:
        from numba.core.analysis import compute_live_variables

        life, blocks = self._code.variable_lifetime, self._code.blocks
        alive = compute_live_variables(life.cfg, blocks, life.usedefs.defmap, life.deadmaps.combined)
        found = {one: alive[offset] for offset, one in blocks.items()}
        self.update(found)
        return found[block]
