"""GAIA on the default engine: jobs that may wait run while the grid is clean, on a cluster that has an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.grids import hourly

from gantline.core.errors import GantlineError
from gantline.core.facts import Signal
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.gaia.policies import Errand, carbon_time, cleanest_spans, lowest_slot, lowest_window, spans_below

HOUR = 3600.0
DAY = Signal(tuple(500.0 if 6 <= hour < 18 else 100.0 for hour in range(24)))


@pytest.fixture
def grid(tmp_path: Path) -> str:
    return hourly(tmp_path, DAY.values)


def run(grid: str, jobs: list[dict[str, Any]], cluster: str = "1x4", options: dict[str, Any] | None = None, **settings: Any) -> Run:
    rows = [{"job": str(number), "gpus": 1, **job} for number, job in enumerate(jobs)]
    return simulate(pl.DataFrame(rows), cluster, "gaia", settings=settings, carbon=grid, power="gpu=1000/0", **options or {})


def test_a_job_waits_for_the_night_and_emits_a_fifth(grid: str) -> None:
    job = {"arrival": 12.5 * HOUR, "duration": 2 * HOUR}

    waits, at_once = run(grid, [job], waiting="6x24"), run(grid, [job], waiting="0x0")

    assert (waits.jobs["first_start"][0] / HOUR, at_once.jobs["first_start"][0] / HOUR) == (18.0, 12.5)
    assert (waits.summary["carbon_kg"], at_once.summary["carbon_kg"]) == pytest.approx((0.2, 1.0))
    assert waits.summary["kwh"] == pytest.approx(2.0)


def test_no_job_waits_longer_than_it_may_nor_misses_a_deadline_that_it_could_keep(grid: str) -> None:
    noon = {"arrival": 12 * HOUR, "duration": HOUR}
    late, tight = noon | {"deadline": 30 * HOUR}, noon | {"deadline": 18.5 * HOUR}

    found = run(grid, [noon, late, tight], waiting="8x24", carbon="oracle")

    assert found.jobs["first_start"].to_list() == [18 * HOUR, 18 * HOUR, 12 * HOUR]  # no hour that is cleaner begins in time


def test_a_job_that_may_be_suspended_stops_while_the_grid_is_dirty(grid: str) -> None:
    found = run(grid, [{"arrival": 4 * HOUR, "duration": 4 * HOUR}], scheduling="suspend-resume", waiting="24x24")

    spells = [(start / HOUR, end / HOUR) for start, end in found.allocations.select("start", "end").rows()]
    assert spells == [(4.0, 6.0), (18.0, 20.0)]


def test_devices_that_are_paid_for_start_jobs_early(grid: str) -> None:
    noon = [{"arrival": 12 * HOUR, "duration": HOUR} for _ in range(3)]

    found = run(grid, noon, scheduling="carbon-cost", carbon="oracle", waiting="6x24", reserved=2)

    assert sorted(start / HOUR for start in found.jobs["first_start"]) == [12.0, 12.0, 13.0]


def test_jobs_that_were_late_run_as_soon_as_nothing_is_gained_by_waiting(grid: str) -> None:
    """One device, two jobs that both want the evening: the second runs behind the first, not a day later."""
    noon = [{"arrival": 12 * HOUR, "duration": HOUR} for _ in range(2)]

    found = run(grid, noon, cluster="1x1", waiting="6x24", carbon="oracle")

    assert sorted(start / HOUR for start in found.jobs["first_start"]) == [18.0, 19.0]


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"scheduling": "carbon-spot"}, "spot"),
        ({"start": 3}, "regime gaia only"),
        ({"reserved": 3}, "does not read 'reserved'"),
        ({"scheduling": "carbon-cost"}, "none is"),
    ],
)
def test_what_means_nothing_on_a_cluster_of_ones_own_is_refused(grid: str, settings: dict[str, Any], what: str) -> None:
    with pytest.raises(GantlineError, match=what):
        run(grid, [{"arrival": 0.0, "duration": 600.0}], **settings)


def test_without_a_series_the_policy_is_refused() -> None:
    with pytest.raises(GantlineError, match="needs carbon"):
        simulate(pl.DataFrame({"job": ["a"], "arrival": [0.0], "gpus": [1], "duration": [9.0]}), "1x1", "gaia")


errands = st.builds(Errand, st.floats(0, 86400), st.floats(60, 30 * HOUR), st.floats(60, 30 * HOUR), st.floats(0, 30 * HOUR))
signals = st.lists(st.integers(1, 20), min_size=1, max_size=60).map(lambda levels: Signal(tuple(float(level) for level in levels)))


@given(signals, errands)
def test_a_start_is_never_before_now_nor_after_the_patience_and_emits_no_more_than_no_wait(signal: Signal, job: Errand) -> None:
    for start in (lowest_slot(signal, job), lowest_window(signal, job, job.length), carbon_time(signal, job, job.length)):
        assert job.now <= start <= job.now + job.patience + 1e-6
    for start in (lowest_window(signal, job, job.length), carbon_time(signal, job, job.length)):
        at_once = signal.integral(job.now, job.now + job.length)
        assert signal.integral(start, start + job.length) <= at_once * (1 + 1e-9) + 1e-6


@given(signals, errands)
def test_spans_hold_the_whole_job_within_its_patience_and_emit_no_more_than_no_wait(signal: Signal, job: Errand) -> None:
    spans = cleanest_spans(signal, job)
    inner = sum(end - begin for begin, end in spans[:-1])
    last = job.length - inner  # the last one is as long as it takes

    assert spans[0].begin >= job.now
    assert last >= -1e-6
    assert spans[-1].begin + last <= job.now + job.length + job.patience + 1e-3
    emitted = sum(signal.integral(begin, end) for begin, end in spans[:-1]) + signal.integral(spans[-1].begin, spans[-1].begin + last)
    assert emitted <= signal.integral(job.now, job.now + job.length) * (1 + 1e-9) + 1e-3


@given(signals, errands)
def test_below_a_threshold_a_job_waits_no_longer_than_its_patience_in_all(signal: Signal, job: Errand) -> None:
    spans = spans_below(signal, job)
    inner = sum(end - begin for begin, end in spans[:-1])

    assert spans[-1].begin + job.length - inner <= job.now + job.length + job.patience + 1e-3
