"""Which cases of a test with many run at every change; `make test-long` and `make records` run all of them.

`@pytest.mark.each_value` is for a test that several `parametrize` multiply. A product asks every pair of values, although a defect nearly
always needs one value only: with the mark each value of each parameter is there (at least `times` times, with partners that differ).

`@pytest.mark.one_in(3)` is for a long list of like cases, such as the runs of an original: the first of every three is there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

Cell = tuple[str, int]  # a parameter and which of its values, as an object: values need not be hashable


def cases_left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The items of marked tests that do not run at every change."""
    cases: dict[tuple[object, str | None], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function):
            cases[item.parent, item.originalname].append(item)
    left_out: set[pytest.Item] = set()
    for of_one_test in cases.values():
        if (mark := of_one_test[0].get_closest_marker("each_value")) is not None:
            left_out |= _spare(of_one_test, **mark.kwargs)
        if (mark := of_one_test[0].get_closest_marker("one_in")) is not None:
            left_out |= {item for number, item in enumerate(of_one_test) if number % mark.args[0]}
    return left_out


def _spare(product: list[pytest.Function], times: int = 1) -> set[pytest.Item]:
    """What is left of a product once every value has been taken often enough, always by the item whose values were taken least."""
    cells: dict[pytest.Item, list[Cell]] = {item: [(name, id(value)) for name, value in item.callspec.params.items()] for item in product}
    taken: Counter[Cell] = Counter()
    wanted = {cell for found in cells.values() for cell in found}
    while cells and any(taken[cell] < times for cell in wanted):
        chosen = min(cells, key=lambda item: sorted(taken[cell] for cell in cells[item]))
        taken.update(cells.pop(chosen))
    return set(cells)
