"""Calling a compiled function of which only the address is known: one of NumPy's own inner loops."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from gantline._machine_code.fingerprint import Source


class ByAddress(Source):
    """What a kernel calls as ``loop(address, arguments, count, strides, extra)``, as a ufunc's inner loop is called; all are addresses."""

    @cached_property
    def _numba_type_(self) -> Any:
        """How Numba sees it; made when a kernel that calls it is compiled, so that nothing else imports Numba."""
        from llvmlite import ir
        from numba.core import types as known
        from numba.core.typing.templates import make_intrinsic_template

        types: Any = known

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            byte, word = ir.IntType(8).as_pointer(), ir.IntType(64).as_pointer()
            taken = [byte.as_pointer(), word, word, byte]
            loop = builder.inttoptr(values[0], ir.FunctionType(ir.VoidType(), taken).as_pointer())
            builder.call(loop, [builder.inttoptr(value, kind) for value, kind in zip(values[1:], taken)])
            return context.get_dummy_value()

        def typed(typingctx: Any, address: Any, arguments: Any, count: Any, strides: Any, extra: Any) -> Any:
            return types.none(*[types.int64] * 5), emit

        make: Any = make_intrinsic_template
        return types.Function(make(self, typed, self.__name__, prefer_literal=False, kwargs={}))

    def __reduce__(self) -> Any:
        return _by_name, (self.__module__, self.__qualname__)


def _by_name(module: str, name: str) -> Any:
    from importlib import import_module

    return getattr(import_module(module), name)
