"""The presets have the statistics that `docs/workloads.md` states, within the tolerances stated there."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.traces.generators import generate
from gantline.traces.generators.presets import benchmark_traces
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


# The benchmark's workloads fit their clusters and differ in character.

BENCHMARKS = ("steady", "bursty", "gangs", "swarm", "mixed")


@cache
def found(name: str) -> TraceStats:
    workload = benchmark_traces()[name]
    return stats(workload(seed=0), gpus=parse_cluster(workload.cluster).gpus)


def share_of(name: str, fewest: int) -> float:
    return sum(size.jobs for size in found(name).sizes if int(size.name) >= fewest)


def test_there_are_five_in_a_fixed_order() -> None:
    assert tuple(benchmark_traces()) == BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_workload_fits_its_cluster(name: str) -> None:
    workload = benchmark_traces()[name]
    cluster = parse_cluster(workload.cluster)
    assert workload.settings.gpus == cluster.gpus
    assert found(name).largest <= cluster.gpus // 2
    assert 2000 <= found(name).jobs <= 5000
    assert workload.summary


@pytest.mark.parametrize("name", BENCHMARKS)
def test_its_trace_is_that_of_the_generator_of_the_same_name(name: str) -> None:
    trace = benchmark_traces()[name](seed=4)
    assert generate(name, seed=4) == trace
    assert Trace.from_frame(trace.frame).frame.equals(trace.frame)


def test_the_load_can_be_changed_like_that_of_any_preset() -> None:
    assert stats(generate("swarm", seed=0, load=0.5), gpus=64).offered_load == pytest.approx(0.5, rel=0.01)


def test_each_has_its_own_character() -> None:
    assert found("steady").gap_variation == pytest.approx(1, abs=0.1)
    assert (found("bursty").gap_variation or 0) > 4
    assert max(found("bursty").hour_of_day) > 6 * min(found("bursty").hour_of_day)
    assert share_of("gangs", 16) == pytest.approx(0.5, abs=0.04)
    assert share_of("swarm", 4) == 0
    assert found("swarm").durations[0.99] < 2 * 3600 < found("steady").durations[0.99]
    assert found("mixed").deadlines == pytest.approx(0.6 * 2500, rel=0.1)


def test_the_mixed_workload_may_run_on_every_type_of_its_cluster() -> None:
    workload = benchmark_traces()["mixed"]
    options = workload().frame["options"].str.split("|").list.eval(pl.element().str.extract(r"^(\w+):"))
    assert set(map(tuple, options.to_list())) == {parse_cluster(workload.cluster).types} == {("v100", "p100", "k80")}


# The recipes against workloads that the originals produced, and the stated statistics against the public job list.
#
# The reference data are not part of the project; where they do not lie beside the checkout these tests are skipped.

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason="no reference data beside the checkout (shared/reference)")


def gavel_rows(name: str) -> list[list[str]]:
    lines = (REFERENCE / "gavel" / "traces" / f"{name}.trace").read_text().splitlines()
    return [line.split("\t") for line in lines]


def as_rows(trace: Trace) -> list[tuple[str, int, int, str]]:
    """Throughput key, whole steps, weight and arrival as Gavel's files have them."""
    frame = trace.frame.select("throughput_key", "work", "weight", "arrival")
    return [(key, int(work), int(weight), f"{arrival:.6f}") for key, work, weight, arrival in frame.iter_rows()]


@pytest.mark.parametrize(
    ("name", "generator", "settings"),
    [
        ("big_single_1000_lam900", "gavel", {"jobs": 1000, "mean_gap": 900}),
        ("static_single_60", "gavel-script", {"jobs": 60}),
        ("static_multi_60", "gavel-script", {"jobs": 60, "multi_gpu": True}),
    ],
)
def test_gavel_seed_0_gives_gavels_jobs(name: str, generator: str, settings: dict[str, object]) -> None:
    table = REFERENCE / "gavel" / "throughputs" / "simulation_throughputs.json"
    rows = gavel_rows(name)
    expected = [(f"('{row[0]}', {row[6]})", int(row[5]), int(row[7]), f"{float(row[9]):.6f}") for row in rows]
    assert as_rows(generate(generator, seed=0, throughputs=table, **settings)) == expected


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("A_load6_1gpu", {"jobs_per_hour": 6}),
        ("L2_load42_small_1gpu", {"jobs_per_hour": 42, "small": True}),
        ("S_load4_small_multigpu", {"jobs_per_hour": 4, "small": True, "sizes": "1,1,1,1,1,1,1,2,2,4,4,8"}),
    ],
)
def test_blox_seed_1_gives_bloxs_jobs(name: str, settings: dict[str, object]) -> None:
    with (REFERENCE / "blox" / "workloads" / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    frame = generate("blox", seed=1, jobs=len(rows), **settings).frame
    assert frame["arrival"].to_list() == [float(row["arrival_s"]) for row in rows]
    assert frame["gpus"].to_list() == [int(row["num_gpus"]) for row in rows]
    assert frame["duration"].to_list() == pytest.approx([float(row["total_iterations"]) for row in rows], rel=1e-12)


def test_blox_with_a_longer_list_gives_the_jobs_of_the_sweep() -> None:
    with gzip.open(REFERENCE / "blox" / "workloads" / "sweep_12000_1gpu.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    frame = generate("blox", seed=1, jobs=12_000, list_jobs=12_000, jobs_per_hour=7).frame
    gaps = np.ceil(np.array([float(row["unit_exponential"]) for row in rows]) / 7 * 3600)
    assert frame["arrival"].to_list() == np.cumsum(gaps).tolist()
    assert frame["duration"].to_list() == pytest.approx([float(row["duration_s"]) for row in rows], rel=1e-12)


@pytest.fixture(scope="module")
def philly_list() -> Trace:
    raw = pl.read_csv(REFERENCE / "pollux" / "philly_jobs.csv.gz", try_parse_dates=True).drop_nulls().sort("timestamp")
    seconds = raw["timestamp"].dt.epoch("s")
    names = pl.Series(range(len(raw)), dtype=pl.Int64).cast(pl.String)
    gpus = raw["num_gpus"].cast(pl.Int64)
    arrival = (seconds - seconds[0]).cast(pl.Float64)
    columns = {"job": names, "arrival": arrival, "gpus": gpus, "duration": raw["duration"], "queue": raw["cluster"]}
    return Trace(pl.DataFrame(columns))


def test_the_philly_statistics_are_those_of_the_public_list(philly_list: Trace) -> None:
    found = stats(philly_list)
    stated = {cells[0]: number(cells[1]) for preset, cells in ROWS if preset == "philly" and cells[4] == "[L]"}
    measured = {
        "GPUs per job": found.mean_gpus,
        "mean duration": found.mean_duration,
        "rank correlation of size and duration": found.size_duration_correlation,
        "largest queue": found.queues[0].jobs,
        **{f"duration p{p}": found.durations[p / 100] for p in (25, 50, 75, 90, 95, 99)},
        **{f"jobs with {name}": of_class(found, name, "jobs") for name in ("1 GPU", "2-4 GPUs", "5-8 GPUs")},
        **{f"GPU time of jobs with {name}": of_class(found, name, "gpu_time") for name in ("1 GPU", "5-8 GPUs")},
    }
    for name, value in measured.items():
        assert value == pytest.approx(stated[name], rel=0.01), name
