"""Which combinations of parameters run at every change: `@pytest.mark.each_value` on a test that several `parametrize` multiply.

A product asks every pair of values, although a defect nearly always needs one value only. With the mark each value of each parameter is
there (at least `times` times, with partners that differ), and `make test-long` runs the whole product.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable

import pytest

Cell = tuple[str, int]  # a parameter and which of its values, as an object: values need not be hashable


def combinations_left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The items of marked tests that a covering selection does not need."""
    products: dict[tuple[pytest.Item | None, Hashable], list[tuple[pytest.Function, int]]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("each_value")
        if mark is not None and isinstance(item, pytest.Function):
            products[item.parent, item.originalname].append((item, mark.kwargs.get("times", 1)))
    return {item for product in products.values() for item in _spare([one for one, _ in product], product[0][1])}


def _spare(product: list[pytest.Function], times: int) -> set[pytest.Item]:
    """What is left of a product once every value has been taken often enough, always by the item whose values were taken least."""
    cells: dict[pytest.Item, list[Cell]] = {item: [(name, id(value)) for name, value in item.callspec.params.items()] for item in product}
    taken: Counter[Cell] = Counter()
    wanted = {cell for found in cells.values() for cell in found}
    while cells and any(taken[cell] < times for cell in wanted):
        chosen = min(cells, key=lambda item: sorted(taken[cell] for cell in cells[item]))
        taken.update(cells.pop(chosen))
    return set(cells)
