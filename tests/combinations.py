"""Which cases of a test with many run at every change; `make test-long` and `make records` run all of them.

`@pytest.mark.each_value` is for a test that several `parametrize` multiply. A product asks every pair of values, although a defect nearly
always needs one value only: with the mark each value of each parameter is there (at least `times` times, with partners that differ).

`@pytest.mark.one_in(3)` is for a long list of like cases, such as the runs of an original: the first of every three is there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import pytest

Case = TypeVar("Case", bound=Hashable)  # its cells are parameters, each with one of its values


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
    return spare({item: [(name, id(value)) for name, value in item.callspec.params.items()] for item in product}, times)


def spare(cells_of: Mapping[Case, Sequence[Hashable]], times: int = 1) -> set[Case]:
    """What is left of a product once every cell has been taken often enough, always by the case whose cells were taken least."""
    left = dict(cells_of)
    taken: Counter[Hashable] = Counter()
    wanted = {cell for found in left.values() for cell in found}
    while left and any(taken[cell] < times for cell in wanted):
        chosen = min(left, key=lambda case: sorted(taken[cell] for cell in left[case]))
        taken.update(left.pop(chosen))
    return set(left)
