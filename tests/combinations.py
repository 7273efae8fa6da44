"""Which cases of a test with many run at every change; `make test-long` and `make records` run all of them.

`@pytest.mark.each_value` is for a test that several `parametrize` multiply. A product asks every pair of values, although a defect nearly
always needs one value only: with the mark each value of each parameter is there (at least `times` times, with partners that differ).

`@pytest.mark.pairs` is for a test that three or more multiply, where one option acts differently beside another: every two values of
every two parameters meet in some case.

`@pytest.mark.one_in(3)` is for a long list of like cases, such as the runs of an original: the first of every three is there.

A test with none of them whose parameter `seed` counts up draws its examples from it: a quarter of the seeds is there, in the heart all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import pytest

#: how many of the random examples are drawn at every change; `--long` draws all of them
SHARE_OF_EXAMPLES = 4
FEWEST_NUMBERS = 3
ALL_EXAMPLES = ("engine",)  # the heart: a planted defect there was found by the later examples only
Numbers = TypeVar("Numbers", bound=Sequence[int])
Case = TypeVar("Case", bound=Hashable)  # its cells are parameters, each with one of its values


def cases_left_out(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """The items of marked tests that do not run at every change."""
    cases: dict[tuple[object, str | None], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function):
            cases[item.parent, item.originalname].append(item)
    left_out: set[pytest.Item] = set()
    for of_one_test in cases.values():
        first = of_one_test[0]
        each, pairs, one_in = (first.get_closest_marker(name) for name in ("each_value", "pairs", "one_in"))
        if each is not None:
            left_out |= spare(_cells(of_one_test), **each.kwargs)
        if pairs is not None:
            left_out |= spare_beside_pairs(_cells(of_one_test))
        if one_in is not None:
            left_out |= {item for number, item in enumerate(of_one_test) if number % one_in.args[0]}
        if each is pairs is one_in is None and first.path.parent.name not in ALL_EXAMPLES and _has_seeds(first):
            left_out |= _later_seeds(of_one_test)
    return left_out


def a_quarter(numbers: Numbers) -> Numbers:
    """Of the numbers from which a test draws its examples."""
    return numbers[: max(FEWEST_NUMBERS, len(numbers) // SHARE_OF_EXAMPLES)]  # type: ignore[return-value]


def _has_seeds(test: pytest.Function) -> bool:
    return hasattr(test, "callspec") and "seed" in test.callspec.params


def _later_seeds(drawn: list[pytest.Function]) -> set[pytest.Item]:
    seeds = list(dict.fromkeys(item.callspec.params["seed"] for item in drawn))
    if seeds != [*range(seeds[0], seeds[0] + len(seeds))]:
        return set()  # chosen by hand: each has found something
    return {item for item in drawn if item.callspec.params["seed"] not in a_quarter(seeds)}


def _cells(cases: list[pytest.Function]) -> dict[pytest.Item, list[Hashable]]:
    return {item: [(name, id(value)) for name, value in item.callspec.params.items()] for item in cases}


def spare(cells_of: Mapping[Case, Sequence[Hashable]], times: int = 1) -> set[Case]:
    """What is left of a product once every cell has been taken often enough, always by the case whose cells were taken least."""
    left = dict(cells_of)
    taken: Counter[Hashable] = Counter()
    wanted = {cell for found in left.values() for cell in found}
    while left and any(taken[cell] < times for cell in wanted):
        chosen = min(left, key=lambda case: sorted(taken[cell] for cell in left[case]))
        taken.update(left.pop(chosen))
    return set(left)


def spare_beside_pairs(cells_of: Mapping[Case, Sequence[Hashable]]) -> set[Case]:
    """What is left once every two cells that meet anywhere have met, always in the case where most of them meet for the first time."""
    left = {case: set(combinations(cells, min(2, len(cells)))) for case, cells in cells_of.items()}
    missing = set[tuple[Hashable, ...]]().union(*left.values())
    while missing:
        chosen = max(left, key=lambda case: len(left[case] & missing))  # the first of equals
        missing -= left.pop(chosen)
    return set(left)
