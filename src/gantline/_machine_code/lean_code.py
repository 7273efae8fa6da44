"""LLVM's language without what LLVM would have to remove again, for functions that count no references.

Numba spells bundles of arrays out, number by number, at every call, puts them together again, stores the whole in memory because more than
one block reads it, and loads the whole to read one array of it: three quarters of the text that LLVM is given. Here a variable that is set
once stays a value, what was just put together or stored is taken from where it came from (`lean_builder.py`), and what nobody reads is left
out.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from collections import defaultdict

from numba.core import ir
from numba.core.analysis import must_use_alloca
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering

from gantline._machine_code.lean_builder import LeanBuilder, Value, leave_out_unread


class LeanLower(Lower):
    """From Numba's language to LLVM's. Nothing is deleted, because nothing is counted."""

    def setup_function(self, fndesc: Value) -> None:
        super().setup_function(fndesc)
        self.builder = LeanBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def _find_singly_assigned_variable(self) -> None:
        """Also those that other blocks read, where each of these comes after the block that sets them."""
        super()._find_singly_assigned_variable()
        blocks, life = self.func_ir.blocks, self.func_ir.variable_lifetime
        in_memory = must_use_alloca(blocks)
        readers = defaultdict(set)
        for at, names in life.usedefs.usemap.items():
            for name in names:
                readers[name].add(at)
        setters = defaultdict(list)
        for at, block in blocks.items():
            for statement in block.find_insts(ir.Assign):
                setters[statement.target.name].append(at)
        above = life.cfg.dominators()
        for name, found in setters.items():
            at = found[0]
            if len(found) == 1 and name not in in_memory and all(at in above[reader] and at < reader for reader in readers[name]):
                self._singly_assigned_vars.add(name)

    def storevar(self, value: Value, name: str, argidx: Value = None) -> None:
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = value
        else:
            self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """Nothing to do."""

    def lower_function_body(self) -> Value:
        tail = super().lower_function_body()
        leave_out_unread(self.function)
        return tail


@register_pass(mutates_CFG=True, analysis_only=False)
class LeanLowering(BaseNativeLowering):
    """Numba's step with the class above."""

    _name = "lean_lowering"  # type: ignore[assignment]

    @property
    def lowering_class(self) -> Value:
        return LeanLower
