"""Which values a parameter takes is said beside it, checked once, and shown."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import ClassVar

import pytest

from gantline.core.errors import UsageError
from gantline.core.policy import OrderPolicy, Takes, param, parameters
from gantline.policies.registry import find_policy, policy_names


@dataclass(frozen=True)
class Careful(OrderPolicy):
    name: ClassVar[str] = "careful"

    mode: str = field(default="near", metadata=param("where to look", one_of=("near", "far")))
    wait: float = field(default=60.0, metadata=param("before it looks", above=0.0, finite=True, unit="seconds"))
    cost: str = field(default="auto", metadata=param("of a move", one_of=("auto",), low=0.0, unit="seconds"))
    first: int | None = field(default=None, metadata=param("where it begins", low=0))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"mode": "away"}, "policy 'careful': parameter 'mode' is 'away' (give near or far)"),
        ({"wait": 0.0}, "parameter 'wait' is 0.0 (give seconds, above 0 and finite)"),
        ({"wait": math.inf}, "'wait' is inf"),
        ({"wait": math.nan}, "'wait' is nan"),
        ({"cost": "-1"}, "'cost' is '-1' (give seconds, 0 or more, or auto)"),
        ({"cost": "dear"}, "'cost' is 'dear'"),
        ({"first": -1}, "'first' is -1 (give a number, 0 or more)"),
    ],
)
def test_a_value_that_a_parameter_does_not_take_is_refused_with_those_that_it_takes(given: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        Careful(**given)  # type: ignore[arg-type]
    assert words in str(refused.value)


def test_values_at_the_bounds_are_taken() -> None:
    Careful(mode="far", wait=1e-9, cost="0", first=0)
    Careful(cost="12.5", first=None)
    assert [Takes(low=0.0, below=1.0).admits(value) for value in (0.0, 0.5, 1.0)] == [True, True, False]


def test_what_is_taken_is_listed_with_the_parameters() -> None:
    assert [one.takes for one in parameters(Careful)] == [
        "near or far", "seconds, above 0 and finite", "seconds, 0 or more, or auto", "a number, 0 or more",
    ]  # fmt: skip


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_checks_what_its_fields_say(name: str) -> None:
    """A class with checks of its own may forget those that it inherits."""
    policy = find_policy(name)
    for item in fields(policy):
        takes = item.metadata.get("takes")
        if takes is not None:
            assert item.default is None or takes.admits(item.default)
            with pytest.raises(UsageError, match=f"'{item.name}' is"):
                policy(**{item.name: math.nan if takes.is_number and not takes.one_of else "no such word"})
