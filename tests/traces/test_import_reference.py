"""The published workloads, where they lie beside the checkout: row counts and statistics that their authors state."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from gantline.traces.importers import import_trace
from gantline.traces.options import parse_options
from gantline.traces.trace import Trace

REFERENCE = Path(__file__).parents[3] / "shared" / "reference"
pytestmark = pytest.mark.skipif(not REFERENCE.is_dir(), reason=f"the published workloads are not at {REFERENCE}")


def read(name: str, path: str, **options: object) -> Trace:
    return import_trace(name, REFERENCE / path, options)


def test_the_philly_list_has_82247_jobs_and_mostly_single_gpus() -> None:
    frame = read("philly-list", "pollux/philly_jobs.csv.gz").frame
    sizes = dict(frame["gpus"].value_counts().iter_rows())
    assert len(frame) == 82247
    assert (sizes[1], sizes[2], sizes[4], sizes[8], sizes[16]) == (76627, 1818, 1870, 1643, 199)
    assert frame["gpus"].max() == 128
    assert frame["arrival"][0] == 0.0
    assert frame["queue"].n_unique() == 15


@pytest.mark.parametrize(
    ("name", "jobs", "sizes"),
    [
        ("static_single_60", 60, {1: 60}),
        ("static_multi_60", 60, {1: 45, 2: 4, 4: 11}),
        ("big_single_1000_lam900", 1000, {1: 1000}),
        ("official_max_min_fairness", 96, None),
        ("official_minimize_makespan", 100, None),
    ],
)
def test_gavel_traces(name: str, jobs: int, sizes: dict[int, int] | None) -> None:
    table = "physical_cluster" if name.startswith("official") else "simulation"
    throughputs = REFERENCE / f"gavel/throughputs/{table}_throughputs.json"
    frame = read("gavel", f"gavel/traces/{name}.trace", throughputs=throughputs).frame
    assert len(frame) == jobs
    if sizes:
        assert dict(frame["gpus"].value_counts().iter_rows()) == sizes
    if name.startswith("static"):
        # The generator draws 1, 2, 3 or 4 hours on a V100 and truncates to whole steps.
        hours = frame["duration"] / 3600
        assert ((hours - hours.round()).abs() < 2e-3).all()
        assert hours.round().is_between(1, 4).all()


def test_shockwave_traces_carry_their_durations_and_modes() -> None:
    paths = sorted((REFERENCE / "shockwave/traces").glob("120_*.trace"))
    frame = import_trace("gavel", paths[0]).frame
    assert dict(frame["mode"].value_counts().iter_rows()) == {"gns": 57, "accordion": 59, "static": 4}
    assert dict(frame["gpus"].value_counts().iter_rows()) == {1: 92, 2: 20, 4: 8}


def test_tiresias_trace_of_60_jobs() -> None:
    frame = read("tiresias", "tiresias/60_job.csv").frame
    assert dict(frame["gpus"].value_counts().iter_rows()) == {1: 30, 2: 10, 4: 10, 8: 10}
    assert (frame["duration"].min(), frame["duration"].max(), frame["arrival"].max()) == (121.0, 1800.0, 1779.0)
    assert (frame["gpus"] * frame["duration"]).sum() / 3600 == pytest.approx(7.4, abs=0.05)


@pytest.mark.parametrize(("name", "jobs"), [("trace1", 1494), ("trace2", 5755), ("trace3", 992), ("trace4", 2638), ("cluster_trace", 400)])
def test_muri_traces_in_seconds(name: str, jobs: int) -> None:
    raw = pl.read_csv(REFERENCE / f"muri/{name}.csv")
    frame = read("muri", f"muri/{name}.csv").frame
    assert len(frame) == jobs
    assert frame["duration"].sum() == pytest.approx(raw["duration"].sum() / 1000)


@pytest.mark.parametrize(
    ("folder", "jobs"), [("workloads", 160), ("workloads-0.5", 80), ("workloads-2.0", 320), ("workloads-realistic", 160)]
)
def test_pollux_workloads(folder: str, jobs: int) -> None:
    for number in range(1, 9):
        assert len(read("pollux", f"pollux/{folder}/workload-{number}.csv")) == jobs


def test_sia_workloads() -> None:
    mix = read("pollux", "sia/workloads/philly/workload-1.csv").frame["app"].value_counts()
    assert dict(mix.iter_rows()) == {"cifar10": 134, "deepspeech2": 12, "bert": 7, "yolov3": 3, "imagenet": 4}
    assert len(read("pollux", "sia/workloads/physical_phoebe_30jobs.csv")) == 30


def test_blox_workloads() -> None:
    frame = read("blox", "blox/workloads/S_load4_small_multigpu.csv").frame
    assert frame["gpus"].mean() == pytest.approx(2.25, abs=0.1)
    assert sorted(frame["gpus"].unique()) == [1, 2, 4, 8]
    single = read("blox", "blox/workloads/L2_load42_small_1gpu.csv").frame
    assert single["duration"].mean() == pytest.approx(3 * 3600, rel=0.1)


def test_irfsim_workloads() -> None:
    frame = read("irfsim", "voda-allox/trace_google_m1_10000.csv").frame
    assert len(frame) == 10000
    assert frame["user"].n_unique() == 10
    assert frame["duration"].median() == 40
    on_cpu = pl.Series([parse_options(text)[1].duration for text in frame["options"]])
    assert (on_cpu.median(), on_cpu.max()) == (214, 398)
    assert (on_cpu < frame["duration"]).mean() == pytest.approx(0.056, abs=0.001)
    assert len(read("irfsim", "voda-allox/trace_experiment_40.csv")) == 40


def test_lucid_log() -> None:
    assert len(read("helios", "lucid/synthetic_912_full_log.csv")) == 913
