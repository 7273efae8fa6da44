"""The presets have the statistics that `docs/workloads.md` states, within the tolerances stated there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gantline.traces.generators import generate
from gantline.traces.stats import TraceStats, stats
from gantline.traces.trace import Trace

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"
JOBS = {"philly": 80_000, "helios": 60_000, "pai": 60_000}
SIZE_CLASSES = {"1 GPU": (1, 1), "2-4 GPUs": (2, 4), "5-8 GPUs": (5, 8), "more than 8 GPUs": (9, 10**9)}
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@cache
def made(name: str, seed: int) -> tuple[Trace, TraceStats]:
    trace = generate(name, seed=seed, jobs=JOBS[name])
    return trace, stats(trace)


def of_class(found: TraceStats, name: str, what: str) -> float:
    fewest, most = SIZE_CLASSES[name]
    return sum(getattr(size, what) for size in found.sizes if fewest <= int(size.name) <= most)


def median_of_class(trace: Trace, name: str) -> float:
    fewest, most = SIZE_CLASSES[name]
    gpus = trace.frame["gpus"]
    return float(trace.frame["duration"].filter((gpus >= fewest) & (gpus <= most)).median())  # type: ignore[arg-type]


def dispersion(name: str, seed: int) -> float:
    arrival = generate(name, seed=seed, jobs=JOBS[name], jobs_per_hour=28.8).frame["arrival"].to_numpy()
    counts = np.bincount((arrival // 600).astype(int))
    return float(counts.var() / counts.mean())


def measure(statistic: str, name: str, seed: int) -> float:
    """The value of a statistic, by the words in which the page names it."""
    trace, found = made(name, seed)
    simple: dict[str, Callable[[], float | None]] = {
        "GPUs per job": lambda: found.mean_gpus,
        "median GPUs": lambda: float(np.median(trace.frame["gpus"].to_numpy())),
        "mean duration": lambda: found.mean_duration,
        "GPU-seconds per job": lambda: found.gpu_hours * 3600 / found.jobs,
        "jobs per hour": lambda: found.jobs_per_hour,
        "variation of gaps": lambda: found.gap_variation,
        "rank correlation of size and duration": lambda: found.size_duration_correlation,
        "dispersion of 10-minute counts": lambda: dispersion(name, seed),
        "largest queue": lambda: found.queues[0].jobs,
        "users": lambda: len(found.users),
        "jobs of the busiest 5 % of users": lambda: sum(u.jobs for u in found.users[: round(0.05 * 1300)]),
    }
    if statistic in simple:
        value = simple[statistic]()
    elif statistic.startswith("duration p"):
        value = found.durations[int(statistic.removeprefix("duration p")) / 100]
    elif statistic.startswith("median duration, "):
        value = median_of_class(trace, statistic.removeprefix("median duration, "))
    elif statistic.startswith("jobs with "):
        value = of_class(found, statistic.removeprefix("jobs with "), "jobs")
    elif statistic.startswith("GPU time of jobs with "):
        value = of_class(found, statistic.removeprefix("GPU time of jobs with "), "gpu_time")
    elif statistic.startswith("hour "):
        value = 24 * found.hour_of_day[int(statistic.split()[1])]
    elif statistic.endswith("day over the mean"):
        value = 7 * found.weekdays[DAYS.index(statistic.split()[0])]
    else:
        value = {outcome.name: outcome.jobs for outcome in found.outcomes}[statistic]
    return value


def number(text: str) -> float:
    """A cell as a number: ``93.2 %`` is 0.932, ``115 s`` is 115."""
    words = text.replace("±", "").split()
    return float(words[0]) / (100 if "%" in words else 1)


def stated() -> list[tuple[str, list[str]]]:
    """The rows of the tables: preset, then statistic, source value, our value, tolerance, source."""
    rows, preset = [], ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("#"):
            preset = line.lstrip("# ").strip()
        elif line.startswith("| ") and preset in JOBS and not line.startswith("| statistic"):
            rows.append((preset, [cell.strip() for cell in line.strip("|").split("|")]))
    return rows


ROWS = stated()
NAMES = [f"{preset}: {cells[0]}" for preset, cells in ROWS]


def within(value: float, published: str, tolerance: str) -> bool:
    """Percentages of percentages are points; percentages of anything else are relative."""
    relative = "%" in tolerance and "%" not in published
    room = number(tolerance) * (abs(number(published)) if relative else 1)
    return abs(value - number(published)) <= room + 1e-12


def test_the_page_states_every_preset() -> None:
    assert {preset for preset, _ in ROWS} == set(JOBS)
    assert len(ROWS) > 40


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("preset", "cells"), ROWS, ids=NAMES)
def test_a_preset_has_the_published_statistic(preset: str, cells: list[str], seed: int) -> None:
    statistic, published, _, tolerance, _ = cells
    value = measure(statistic, preset, seed)
    assert within(value, published, tolerance), f"{value:.4g} is not {published} {tolerance}"


@pytest.mark.parametrize(("preset", "cells"), ROWS, ids=NAMES)
def test_the_page_states_our_value(preset: str, cells: list[str]) -> None:
    statistic, _, ours, _, _ = cells
    assert measure(statistic, preset, 0) == pytest.approx(number(ours), rel=0.01, abs=0.0006)


def test_a_preset_takes_other_settings() -> None:
    trace = generate("philly", seed=2, jobs=None, length="2d", load=0.5, gpus=256, sizes="1:1,8:1")
    assert set(trace.frame["gpus"]) == {1, 8}
    assert trace.frame["arrival"][-1] < 2 * 86400
    assert "queue" in trace.frame.columns


class TestDay:
    def test_it_is_a_day_of_600_jobs_for_64_gpus(self) -> None:
        found = stats(generate("day", seed=0), gpus=64)
        assert found.jobs == 600
        assert 22 * 3600 < found.span < 24 * 3600
        assert {int(size.name) for size in found.sizes} == {1, 2, 4, 8, 16}
        assert 0.7 < (found.offered_load or 0) < 1
        assert len(found.users) == 12
        assert [queue.name for queue in found.queues] == ["research", "product", "teaching"]

    def test_the_afternoon_is_busier_than_the_night(self) -> None:
        hours = stats(generate("day", seed=1)).hour_of_day
        assert sum(hours[13:18]) > 3 * sum(hours[1:6])
