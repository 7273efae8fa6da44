"""Which cases of a test with many run at every change; `make test-long` and `make records` run all of them.

`@pytest.mark.each_value` is for a test that several `parametrize` multiply. A product asks every pair of values, although a defect nearly
always needs one value only: with the mark each value of each parameter is there (at least `times` times, with partners that differ).

`@pytest.mark.one_in(3)` is for a long list of like cases, such as the runs of an original: the first of every three is there.

A test with neither mark whose parameter `seed` counts up draws its examples from it: a quarter of the seeds is there, in the heart all.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
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
        marks = first.get_closest_marker("each_value"), first.get_closest_marker("one_in")
        if marks[0] is not None:
            left_out |= _spare(of_one_test, **marks[0].kwargs)
        if marks[1] is not None:
            left_out |= {item for number, item in enumerate(of_one_test) if number % marks[1].args[0]}
        if marks == (None, None) and first.path.parent.name not in ALL_EXAMPLES and _has_seeds(first):
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
