"""On which instant a decision falls: one spelling, asked by the agenda, by compiled loops and by futures, on both clocks."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.jobs import job_row

import gantline
from gantline.engine.agenda import answer_ends, next_instant, next_look
from gantline.models.model import Gangs, PerformanceModel
from gantline.simulator.simulate import simulate

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


# When the policy is asked: at the tick of a regime, and when a speed ends by itself, on both clocks.

CLOCKS = ("instant", "acknowledged")


def lives(jobs: list[dict[str, Any]], **options: Any) -> dict[str, tuple[float, float]]:
    """When each job starts and ends, the same on both clocks."""
    runs = [simulate(jobs, "1x1", "fifo", executor=clock, **options) for clock in CLOCKS]
    assert len({run.summary["log_hash"] for run in runs}) == 1
    return {name: (start, end) for name, start, end in runs[0].jobs.select("job", "first_start", "finish").iter_rows()}


@pytest.mark.parametrize(("regime", "first", "second"), [("default", 0.4, 10.9), ("tiresias", 1.0, 12.0)])
def test_a_regime_with_a_tick_decides_on_whole_ticks(regime: str, first: float, second: float) -> None:
    """Of an arrival between two ticks and of an end between two ticks the next tick knows first; an end itself is exact."""
    jobs = [job_row("a", 1, 10.5, at=0.4), job_row("b", 1, 5.0, at=2.0)]
    assert lives(jobs, regime=regime) == {"a": (first, first + 10.5), "b": (second, second + 5.0)}


@dataclass(frozen=True)
class Warming(PerformanceModel):
    """A gang does one second's work in ten for a minute, then one in one."""

    def rates(self, gangs: Gangs) -> Any:
        cold = gangs.done < 6.0 - 1e-9
        return np.where(cold, 0.1, 1.0), np.where(cold, gangs.since + (6.0 - gangs.done) / 0.1, np.inf)


def test_the_end_of_a_speed_is_an_appointment() -> None:
    """At the speed of its start 'a' would end at 160; its devices are free at 70, and known to be."""
    jobs = [job_row("a", 1, 16.0), job_row("b", 1, 6.0, at=1.0)]
    assert lives(jobs, performance=Warming()) == {"a": (0.0, 70.0), "b": (70.0, 130.0)}
