"""Dataclasses whose methods are compiled when they are first called, as in every process of the command line."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field
from typing import Any

import pytest

from gantline.cli.deferred_methods import DEFERRED, defer_methods, deferring


def test_a_method_is_made_on_its_first_call_and_stays_in_the_class_that_has_it() -> None:
    made: list[str] = []

    def create(name: str, *given: Any) -> Any:
        made.append(name)
        return lambda self, *values: (type(self).__name__, given, values)

    class Thing:
        __hash__ = None  # type: ignore[assignment]
        __init__ = deferring(create)("__init__", "compiled at once, for its signature")
        __repr__ = deferring(create)("__repr__", "text")

    class Kind(Thing):
        __eq__ = deferring(create)("__eq__", "fields")

    assert made == ["__init__"]
    kind = Kind.__new__(Kind)
    assert [kind.__eq__(3), kind.__eq__(4)] == [("Kind", ("fields",), (3,)), ("Kind", ("fields",), (4,))]
    assert [kind.__repr__(), Thing.__new__(Thing).__repr__()] == [("Kind", ("text",), ()), ("Thing", ("text",), ())]
    assert made == ["__init__", "__eq__", "__repr__"]
    assert "__repr__" not in vars(Kind)


@pytest.mark.parametrize("slots", [False, True])
def test_a_dataclass_behaves_as_ever(slots: bool) -> None:
    defer_methods()

    @dataclass(frozen=True, slots=slots)
    class Point:
        x: int
        y: int = 2
        note: str = field(default="", compare=False, repr=False)

    @dataclass(frozen=True, slots=slots)
    class Named(Point):
        name: str = "here"

    one, same, other = Point(1, note="a"), Point(1), Point(3)
    assert (one, hash(one), {one: 5}[same]) == (same, hash(same), 5)
    assert (one != other, one != Named(1), Named(1) == Named(1), len({Named(1), Named(1), Named(1, name="there")})) == (True, True, True, 2)
    assert repr([one, Named(1)]).replace(f"{test_a_dataclass_behaves_as_ever.__name__}.<locals>.", "") == (
        "[Point(x=1, y=2), Named(x=1, y=2, name='here')]"
    )
    for change in (lambda: setattr(one, "x", 4), lambda: delattr(Named(1), "name")):
        with pytest.raises(FrozenInstanceError):
            change()
    assert Point.__eq__.__qualname__.endswith("Point.__eq__")


def test_it_is_in_force_once_however_often_it_is_asked_for() -> None:
    import dataclasses

    defer_methods()
    before = getattr(dataclasses, "_create_fn", None)
    defer_methods()
    assert getattr(dataclasses, "_create_fn", None) is before
    assert "__init__" not in DEFERRED
