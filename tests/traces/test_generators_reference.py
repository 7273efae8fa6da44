"""The recipes against workloads that the originals produced, and the stated statistics against the public job list.

The reference data are not part of the project; where they do not lie beside the checkout these tests are skipped.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.traces.test_generators_presets import ROWS, number, of_class

from gantline.traces.generators import generate
from gantline.traces.stats import stats
from gantline.traces.trace import Trace

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
