"""On which instant a decision falls: one spelling, asked by the agenda, by compiled loops and by futures."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

import gantline
from gantline.engine.agenda import answer_ends, next_instant, next_look

SOURCE = Path(gantline.__file__).parent
LENGTHS = ("round", "ROUND]", "length", "quantum", "QUANTUM]")  # how sources name the length of a round or a quantum


@pytest.mark.parametrize(
    ("due", "now", "looked", "every", "at"),
    [
        (0.0, 0.0, False, False, 0.0),  # the first look may be at once
        (61.0, 0.0, False, False, 120.0),  # else at the boundary after what is due
        (120.0, 60.0, True, False, 120.0),
        (120.0 + 1e-8, 60.0, True, False, 120.0),  # a rounding error is not a round
        (60.0, 60.0, True, False, 120.0),  # what is due at a boundary that has been looked at waits for the next
        (601.0, 60.0, True, False, 660.0),  # rounds in which nothing is due are skipped
        (601.0, 60.0, True, True, 120.0),  # unless every one is visited
    ],
)
def test_decisions_fall_on_round_boundaries(due: float, now: float, looked: bool, every: bool, at: float) -> None:
    assert next_instant(due, now, 60.0, looked, every) == at


def test_without_rounds_they_fall_on_what_is_due() -> None:
    assert next_instant(61.5, 10.0, 0.0, True, False) == 61.5
    assert next_instant(5.0, 10.0, 0.0, True, True) == 10.0


def test_an_order_that_moves_is_looked_at_once_per_quantum() -> None:
    assert next_look(61.5, 10.0, 60.0) == 120.0
    assert next_look(10.0, 60.0, 60.0) == 120.0
    assert next_look(math.inf, 60.0, 60.0) == math.inf


def test_an_answer_that_does_not_say_how_long_it_holds_ends_with_the_round_or_the_quantum() -> None:
    assert answer_ends(math.nan, 60.0, 100.0, 30.0) == 160.0
    assert answer_ends(math.nan, 70.0, 0.0, 30.0) == 90.0
    assert answer_ends(70.0, 70.0, 0.0, 30.0) == 90.0  # without end it would be asked at the same instant again
    assert answer_ends(75.0, 70.0, 0.0, 30.0) == 75.0


def divisions(source: str) -> list[str]:
    """What a source divides by the length of a round or a quantum; one that names neither is not parsed."""
    if not any(length in source for length in LENGTHS) or "/" not in source:
        return []
    found = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.FloorDiv)]
    return [ast.unparse(node) for node in found if ast.unparse(node.right).endswith(LENGTHS)]


def test_no_other_file_works_out_round_boundaries() -> None:
    assert divisions("at = math.ceil(due / regime.round - 1e-9) * regime.round") == ["due / regime.round"]
    assert divisions("number = time[NOW] // time[lc.ROUND]") == ["time[NOW] // time[lc.ROUND]"]
    rooms = ("engine", "simulator", "live")
    spelled = {
        str(path.relative_to(SOURCE)): found
        for room in rooms
        for path in sorted((SOURCE / room).rglob("*.py"))
        if (found := divisions(path.read_text(encoding="utf-8")))
    }
    assert spelled.pop("engine/agenda.py")
    assert spelled.pop("simulator/summary.py") == ["state.now / regime.round"]  # how many there were
    assert spelled == {}
