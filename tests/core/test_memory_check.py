"""What a memory may be: lists of numbers are looked at many at a time, with the verdict that a look at each would give."""

from __future__ import annotations

from typing import Any

import pytest

from gantline.core.errors import UsageError
from gantline.core.memory import DEEPEST, LARGEST, check


def within(levels: int, value: Any) -> Any:
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(("value", "levels"), [([1, 2], 1), ([[1], [2.0]], 2), ({"a": [1], "b": [None]}, 2), ([[1], ["x"]], 2)])
def test_a_value_may_be_as_deep_as_the_limit_and_no_deeper(value: Any, levels: int) -> None:
    check(within(DEEPEST - levels, value))
    with pytest.raises(UsageError, match="nested more than 64 levels"):
        check(within(DEEPEST - levels + 1, value))


def test_lists_of_numbers_count_towards_the_largest_memory() -> None:
    lists = {str(job): [0] * 1000 for job in range(LARGEST // 16_000)}
    with pytest.raises(UsageError, match="larger than 32 MB"):
        check(lists)


def test_one_list_among_many_that_is_not_plain_is_named() -> None:
    with pytest.raises(UsageError, match=r"memory\['b'\]\[1\] holds a object"):
        check({"a": [1], "b": [1, object()]})
