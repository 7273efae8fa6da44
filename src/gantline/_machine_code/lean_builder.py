"""Writing LLVM's language without instructions whose result is known: parts of what was just put together, or just stored.

Numba puts every array into memory of its own to read its address and its strides. What is read in the same block in which it was stored
whole needs no memory, as long as nothing but loads, stores and addresses of parts has been given the place.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from collections import defaultdict
from typing import Any, TypeAlias

from llvmlite.ir import Constant, IRBuilder
from llvmlite.ir.instructions import AllocaInstr, ExtractValue, GEPInstr, InsertValue, LoadInstr, PhiInstr, StoreInstr

#: a value, an address, an instruction, a block or a function of LLVM's language: llvmlite has no types
Value: TypeAlias = Any
_WITHOUT_EFFECT = frozenset((ExtractValue, InsertValue, LoadInstr, GEPInstr, AllocaInstr))
_PLACES = frozenset((GEPInstr, AllocaInstr))


class LeanBuilder(IRBuilder):  # type: ignore[misc]
    """Numba's way to write instructions, but those whose result is known."""

    def __init__(self, block: Value = None) -> None:
        super().__init__(block)
        self._stored: dict[Value, tuple[Value, Value]] = {}  # by place in memory: the block that has stored a whole there, and the whole
        self._seen_elsewhere: set[Value] = set()  # places that others may write to

    def extract_value(self, agg: Value, idx: Value, name: str = "") -> Value:
        """A part of a value; if that has just been put together, what was put there."""
        wanted = list(idx) if isinstance(idx, tuple | list) else [idx]
        while isinstance(agg, InsertValue):
            put = list(agg.indices)
            common = min(len(put), len(wanted))
            if put[:common] != wanted[:common]:
                agg = agg.aggregate  # another part
            elif len(put) > len(wanted):
                break  # a part of the wanted part
            else:
                agg, wanted = agg.value, wanted[len(put) :]
                if not wanted:
                    return agg
        return super().extract_value(agg, wanted, name)

    def load(self, ptr: Value, *args: Value, **kwargs: Value) -> Value:
        """What lies there; if it was just stored, what was stored."""
        place, path = _place_of(ptr)
        block, whole = self._stored.get(place, (None, None))
        if block is None or block is not self._block or self._anchor != len(block.instructions):
            return super().load(ptr, *args, **kwargs)
        return self.extract_value(whole, path) if path else whole

    def _insert(self, instr: Value) -> None:
        if isinstance(instr, StoreInstr):
            value, pointer = instr.operands
            self._see([value])
            self._note_store(value, pointer)
        elif not isinstance(instr, LoadInstr | GEPInstr):
            self._see(instr.operands)
        elif isinstance(instr, GEPInstr) and _place_of(instr)[0] is None:
            self._see([instr.pointer])
        super()._insert(instr)

    def _note_store(self, value: Value, pointer: Value) -> None:
        place, path = _place_of(pointer)
        if place is None:
            if isinstance(pointer, PhiInstr):
                self._stored.clear()
        elif path or place in self._seen_elsewhere or self._anchor != len(self._block.instructions):
            self._stored.pop(place, None)
        else:
            self._stored[place] = self._block, value

    def _see(self, values: Value) -> None:
        """Others are given these values: what lies at an address among them may change from now on."""
        for value in values:
            if type(value) in _PLACES:
                place, _ = _place_of(value)
                if place is not None:
                    self._seen_elsewhere.add(place)
                    self._stored.pop(place, None)


def _place_of(pointer: Value) -> tuple[Value, list[int]]:
    """The variable in memory that an address belongs to, and which part of it; none: it cannot be told."""
    path: list[int] = []
    while isinstance(pointer, GEPInstr):
        first, *others = pointer.indices
        if not all(isinstance(index, Constant) for index in pointer.indices) or first.constant != 0:
            return None, []
        path[:0] = [index.constant for index in others]
        pointer = pointer.pointer
    return (pointer, path) if isinstance(pointer, AllocaInstr) else (None, [])


def leave_out_unread(function: Value) -> None:
    """Remove what only reads or computes, if nothing uses the result, and what is stored where nothing reads."""
    everything = [one for block in function.blocks for one in block.instructions]
    uses = {one: 0 for one in everything if type(one) in _WITHOUT_EFFECT}
    stores = defaultdict(list)
    for one in everything:
        for used in _read_by(one):
            if type(used) in _WITHOUT_EFFECT:
                uses[used] += 1
        if type(one) is StoreInstr:
            stores[one.operands[1]].append(one)
    unread = set()
    waiting = [one for one, times in uses.items() if times == 0]
    while waiting:
        one = waiting.pop()
        for gone in (one, *stores[one]) if type(one) is AllocaInstr else (one,):
            unread.add(gone)
            for used in _read_by(gone):
                if type(used) in _WITHOUT_EFFECT:
                    uses[used] -= 1
                    if uses[used] == 0:
                        waiting.append(used)
    for block in function.blocks:
        block.instructions[:] = [one for one in block.instructions if one not in unread]


def _read_by(instruction: Value) -> list[Value]:
    """What an instruction uses; to store something in a variable does not use the variable."""
    if isinstance(instruction, PhiInstr):
        return [value for value, _ in instruction.incomings]
    if isinstance(instruction, StoreInstr) and isinstance(instruction.operands[1], AllocaInstr):
        return [instruction.operands[0]]
    return list(instruction.operands)
