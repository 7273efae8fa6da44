"""Verdicts on policies that are equal, on a population small enough for a test; Erlang's formula; the page and its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline import simulate
from gantline.cli.main import main
from gantline.lab.experiment.coverage.measures import (
    EQUALS,
    MARKOV,
    SHAPE,
    WORKLOADS,
    Guarded,
    Population,
    RandomOrder,
    Workload,
    coverage_over,
    draw_population,
    empty_start,
    erlang_c,
    history_coverage,
    lost_verdicts,
    power_over,
)
from gantline.traces.generators import generate

PAGE = Path(__file__).parents[3] / "docs" / "coverage.md"


@pytest.fixture(scope="module")
def population() -> Population:
    return draw_population(Workload(True, SHAPE, jobs=100), (*EQUALS[:4], "fifo", "srtf"), range(30))


def test_policies_that_differ_are_told_apart_with_seeds_enough(population: Population) -> None:
    few, many = (power_over(population, ("fifo", "srtf", *EQUALS[:2]), seeds, 10) for seeds in (3, 12))
    assert few <= many
    assert many >= 0.9
    assert coverage_over(population, ("fifo", "srtf"), 0, 6, 0.95, 40) >= 0.85


def test_salts_are_different_orders_of_the_same_policy() -> None:
    trace = generate("generic", seed=0, **WORKLOADS["load 0.9 in every seed"].settings())
    hashes = [simulate(trace, "4x4", RandomOrder(salt)).summary["log_hash"] for salt in (0, 1, 1)]
    assert hashes[0] != hashes[1] == hashes[2]


def test_erlangs_formula() -> None:
    """M/M/1 waits load / (1 - load) service times; two servers by hand: C = 1/3 at a load of one half, so 1/3 of a service time."""
    assert erlang_c(1, 0.9) == pytest.approx(9.0)
    assert erlang_c(2, 0.5) == pytest.approx(1 / 3)


def test_an_empty_start_shows_too_little_queueing() -> None:
    found = empty_start("8x8", 64, 0.9, 400, 6)
    assert found.plain < -0.3
    assert found.reported < -0.2


def test_the_guard_is_tried_on_what_can_and_what_cannot_be_sustained() -> None:
    light = Guarded("light", True, Workload(True, MARKOV, 100, 0.3), "fifo", {})
    heavy = Guarded("heavy", False, Workload(True, MARKOV, 100, 1.5), "fifo", {})
    assert (light.unsteady(3), heavy.unsteady(3)) == (0.0, 1.0)


def test_more_seeds_lose_fewer_verdicts() -> None:
    lost = [lost_verdicts(0.1, seeds) for seeds in (1, 5, 10, 20)]
    assert lost[0] == pytest.approx(0.1)
    assert lost == sorted(lost, reverse=True)
    assert lost[1] == pytest.approx(0.00856, abs=1e-5)


def test_histories_are_held_against_other_traces(population: Population) -> None:
    share = history_coverage(Workload(True, SHAPE, jobs=40), population, ("fifo", "srtf"), range(100, 102))
    assert share in (0.0, 0.5, 1.0)


def test_the_page_is_there_and_effort_that_is_too_small_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    for title in ("Wrong verdicts", "Power", "Intervals of changes", "What-if on one history", "The overload guard", "The empty start"):
        assert f"## {title}" in page
    assert main(["experiment", "coverage", "--seeds", "3"]) == 2
    assert "--seeds: 3 are too few (give 40 or more)" in capsys.readouterr().err
