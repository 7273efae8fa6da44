"""What is left out of LLVM's language was not needed: kernels give what Python gives, and what may have changed is loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from llvmlite import ir

from gantline._machine_code.lean_builder import LeanBuilder, leave_out_unread
from gantline.core.arrays import Ints
from gantline.core.jit import kernel

NUMBER, POINTER = ir.IntType(64), ir.IntType(64).as_pointer()
PAIR = ir.LiteralStructType([NUMBER, NUMBER])


class Inner(NamedTuple):
    values: Ints
    count: int


class Outer(NamedTuple):
    inner: Inner
    table: Ints
    step: int


@kernel
def _swapping(a: Ints, b: Ints, times: int) -> int:
    """Bundles and arrays that several blocks set again."""
    here, there = Inner(a, 2), Inner(b, 3)
    for turn in range(times):
        if turn % 2:
            here, there = there, here
        here.values[turn % 3] += there.count * 10 + turn
    return int(here.values[0] * 100 + there.values[1])


@kernel
def _nested(outer: Outer, limit: int) -> int:
    """What is put together in one block and read in others, whole and in parts."""
    found = 0
    copy = Outer(Inner(outer.table[1], outer.inner.count), outer.table, outer.step + 1)
    while found < limit:
        row = copy.table[found % copy.table.shape[0]]
        row[copy.step] += found
        found += int(row[copy.step]) + copy.inner.values[0] + copy.inner.count
    return found


@kernel
def _sometimes_set(values: Ints, count: int) -> int:
    """A variable that one branch sets and a later round reads."""
    best = -1
    for at in range(count):
        if values[at] > 2:
            last = values[at]
            best = max(best, last)
        elif best > 0:
            best += last
    return best


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_swapping, lambda: (np.arange(3), np.arange(5, 8), 5)),
        (_nested, lambda: (Outer(Inner(np.arange(4), 3), np.arange(12).reshape(3, 4), 1), 40)),
        (_sometimes_set, lambda: (np.array([0, 3, 1, 9, 2]), 5)),
    ],
)
def test_a_kernel_gives_what_the_same_python_gives(function: Any, arguments: Callable[[], tuple[Any, ...]]) -> None:
    compiled, plain = arguments(), arguments()
    assert function(*compiled) == function.py_func(*plain)
    assert str(compiled) == str(plain)


@pytest.fixture
def builder() -> LeanBuilder:
    function = ir.Function(ir.Module(), ir.FunctionType(NUMBER, [NUMBER, NUMBER]), "made")
    return LeanBuilder(function.append_basic_block("entry"))


def stored_pair(builder: LeanBuilder) -> tuple[Any, Any]:
    """A place in memory with the function's two arguments, and the first of them."""
    first, second = builder.function.args
    place = builder.alloca(PAIR)
    builder.store(builder.insert_value(builder.insert_value(PAIR(ir.Undefined), first, 0), second, 1), place)
    return place, first


def part(builder: LeanBuilder, place: Any, at: int) -> Any:
    return builder.gep(place, [ir.IntType(32)(0), ir.IntType(32)(at)])


def test_what_was_just_stored_is_not_loaded_and_its_place_disappears(builder: LeanBuilder) -> None:
    place, first = stored_pair(builder)
    assert builder.load(part(builder, place, 0)) is first
    builder.ret(first)
    leave_out_unread(builder.function)
    assert [one.opname for one in builder.block.instructions] == ["ret"]


def write_a_part(builder: LeanBuilder, place: Any) -> None:
    builder.store(NUMBER(7), part(builder, place, 0))


def give_it_away(builder: LeanBuilder, place: Any) -> None:
    other = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [POINTER]), "other")
    builder.call(other, [part(builder, place, 0)])


def keep_its_address(builder: LeanBuilder, place: Any) -> None:
    builder.store(part(builder, place, 0), builder.alloca(POINTER))


def see_it_as_another_type(builder: LeanBuilder, place: Any) -> None:
    builder.store(NUMBER(7), builder.bitcast(place, POINTER))


def go_to_another_block(builder: LeanBuilder, place: Any) -> None:
    block = builder.append_basic_block("next")
    builder.branch(block)
    builder.position_at_end(block)


@pytest.mark.parametrize("then", [write_a_part, give_it_away, keep_its_address, see_it_as_another_type, go_to_another_block])
def test_it_is_loaded_where_it_may_have_changed(builder: LeanBuilder, then: Callable[[LeanBuilder, Any], None]) -> None:
    place, _ = stored_pair(builder)
    then(builder, place)
    found = builder.load(part(builder, place, 0))
    builder.ret(found)
    leave_out_unread(builder.function)
    kept = [one.opname for block in builder.function.blocks for one in block.instructions]
    assert kept.count("alloca") >= 1
    assert kept[-3:] == ["getelementptr", "load", "ret"]
