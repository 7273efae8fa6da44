"""`--regime irfsim` ends every job in the second in which the original simulator of AlloX ends it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from random import Random

import polars as pl
import pytest
from tests.simulator.references import one_in
from tests.systems.allox import reference
from tests.systems.allox.hybrid import some_jobs

from gantline.core.errors import TraceError, UsageError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.allox.importer import read
from gantline.traces.generators import generate
from gantline.traces.trace import Trace

NAMES = {
    "DRFFIFO": "drf-fifo",
    "DRF": "drf",
    "ES": "es",
    "DRFExt": "drf-ext",
    "SJF": "allox.sjf",
    "SRPT": "allox.srpt",
    "AlloX": "allox",
    "AlloXPlus": "allox.plus",
}
#: a hash over when each of the jobs of `write_trace` ends, with profiling and without
ENDS = {
    "DRFFIFO": ("4a1389e7bc16", "4a1389e7bc16"),
    "DRF": ("19f916a31d7f", "2cda3b07a269"),
    "ES": ("fd3f9536a4b2", "1f00bd12338f"),
    "DRFExt": ("a8b3f8d9fbf8", "e0490273465c"),
    "SJF": ("41be2c6433d4", "09383e5014ef"),
    "SRPT": ("3a5d16e4a2a4", "318c5e8cf1fb"),
    "AlloX": ("ba44206cb205", "ac239fa311ce"),
    "AlloXPlus": ("0715d3cad678", "c26723449886"),
}
REGIMES = ("irfsim", "irfsim-known")  # with profiling, and without
HEADING = "job_id,user,arrival_s,cpus,mem_gb,cpu_time_s,gpus,gpu_job_mem_gb,gpu_time_s,cpu_err,gpu_err"


def cluster(gpus: int, nodes: int, cores: int) -> str:
    return f"gpu:{gpus}x1/0c/64g,cpu:{nodes}x0/{cores}c/64g"


def ends(run: Run) -> dict[int, float]:
    return dict(zip(run.jobs["job"].cast(pl.Int64).to_list(), run.jobs["finish"].to_list()))


def run_like_original(trace: Trace, place: str, method: str, alpha: float, regime: str = "irfsim") -> Run:
    return simulate(trace, place, NAMES[method], settings={"alpha": alpha} if method == "AlloX" else {}, regime=regime)


@pytest.mark.parametrize("method", ["DRFFIFO", "DRF", "ES", "DRFExt", "AlloX", "SRPT"])
def test_the_forty_job_experiment_job_by_job(method: str) -> None:
    rows = [row for row in reference.rows("irfsim_per_job.csv") if row["method"] == method]
    run = run_like_original(read(reference.path("trace_experiment_40.csv")), cluster(4, 8, 20), method, alpha=0.5)
    assert ends(run) == {int(row["job_id"]): float(row["end_s"]) for row in rows}
    if method == "SRPT":  # it restarts all jobs at every event, which is one run here
        return
    began = {int(row["job_id"]): float(row["start_running_s"]) for row in rows}
    last = run.allocations.filter(pl.col("reason") == "finished")
    assert dict(zip(last["job"].cast(pl.Int64).to_list(), last["start"].to_list())) == began


@pytest.mark.parametrize("method", one_in(7, ["DRFFIFO", "DRF", "ES", "DRFExt", "SJF", "SRPT", "AlloXPlus"]))
def test_ten_thousand_jobs_to_the_last_printed_digit(method: str) -> None:
    expected = next(
        row for row in reference.rows("irfsim_committed_results.csv") if row["method"] == method and row["full_jobs"] == "10000"
    )
    run = run_like_original(read(reference.path("trace_google_m1_10000.csv")), cluster(20, 20, 32), method, alpha=0.1)
    times = run.jobs["jct"].sort().to_list()
    assert round(run.summary["average_jct"], 2) == float(expected["avg_jct_s"])
    for share, column in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99")):
        assert times[int(share * len(times))] == float(expected[column])
    assert run.summary["max_jct"] == float(expected["max"])
    assert run.summary["makespan"] == float(expected["makespan_s"])
    assert run.summary["estimates"] == "declared"


def hash_of(run: Run) -> str:
    return hashlib.blake2b(repr(sorted(ends(run).items())).encode(), digest_size=6).hexdigest()


@pytest.mark.parametrize("method", ENDS)
def test_jobs_with_fractional_times_end_in_the_recorded_second(method: str, tmp_path: Path) -> None:
    """Whole seconds, sums and the order of equals decide here; these ends are those of the rules in docs/design/irfsim.md, one by one."""
    trace = read(write_trace(tmp_path / "jobs.csv", 60 if method == "AlloX" else 120))
    found = [hash_of(run_like_original(trace, cluster(4, 4, 32), method, 0.3, regime)) for regime in REGIMES]
    assert tuple(found) == ENDS[method]


def test_allox_keeps_users_with_equal_scores_as_the_last_matching_of_the_event_left_them(tmp_path: Path) -> None:
    """Jobs of one size and whole times: scores are equal again and again, and the order by name would end two thirds of them elsewhere."""
    draws = Random(2)
    lines = [HEADING]
    for number in range(50):
        gpu = draws.randint(5, 60)
        cpu = gpu * draws.choice([1, 2, 4])
        lines.append(f"{number},queue{draws.randrange(5)},{number // 5 * 7},32,4,{cpu},1,2,{gpu},0,0")
    file = tmp_path / "jobs.csv"
    file.write_text("\n".join(lines) + "\n")
    found = [hash_of(run_like_original(read(file), cluster(3, 3, 32), "AlloX", 0.3, regime)) for regime in REGIMES]
    assert found == ["843c9cef0bcc", "00cdd8b2dbf1"]


def write_trace(file: Path, count: int) -> Path:
    """Jobs of four users with fractional times and errors, in the columns of the original's traces."""
    lines = [HEADING]
    for number in range(count):
        gpu = 10 + (number * 37) % 91 + (number % 4) / 8
        cpu = gpu * (0.8 + (number * 13 % 29) / 7)
        error = ((number * 7) % 11 - 5) / 40
        lines.append(f"{number},queue{number * 5 % 4},{number // 2 * 9},32,{1 + number % 15},{cpu},1,2,{gpu},{error},{-error / 2}")
    file.write_text("\n".join(lines) + "\n")
    return file


def test_intervals_cover_the_samples_and_never_overlap_on_a_device(tmp_path: Path) -> None:
    run = run_like_original(read(write_trace(tmp_path / "jobs.csv", 40)), cluster(4, 4, 32), "DRF", 1.0)
    spans = run.allocations
    assert spans.filter(pl.col("reason") == "limit").height == 4 * 40
    assert spans.filter(pl.col("reason") == "finished").height == 40
    for column, kind in (("devices", "gpu"), ("nodes", "cpu")):
        held = spans.filter(pl.col("type") == kind).explode(column).sort(column, "start")
        same = held[column][1:] == held[column][:-1]
        assert (held["start"][1:] >= held["end"][:-1]).filter(same).all()
    assert (
        run.jobs["service"].to_list()
        == spans.filter(pl.col("reason") == "finished")
        .sort(pl.col("job").cast(pl.Int64))
        .select(pl.col("end") - pl.col("start"))
        .to_series()
        .to_list()
    )


def test_a_job_stopped_at_its_very_end_ends() -> None:
    """SRPT stops everybody at every event, also one that has nothing left to do: it comes back with no time on any device."""
    run = simulate(generate("hybrid", seed=0, jobs=1000), "gpu:20x1/0c/64g,cpu:20x0/32c/64g", "allox.srpt", regime="irfsim")
    assert run.summary["completed"] == 1000


def test_with_fewer_gpus_than_users_equal_share_runs_nothing(tmp_path: Path) -> None:
    run = run_like_original(read(write_trace(tmp_path / "jobs.csv", 12)), cluster(2, 2, 32), "ES", 1.0, "irfsim-known")
    assert run.summary["completed"] == 0
    assert set(run.jobs["state"]) == {"waiting"}


def test_clusters_and_jobs_that_it_cannot_have_are_named() -> None:
    jobs = some_jobs(1, 3)
    with pytest.raises(UsageError, match="GPUs of one type and CPU nodes of one type"):
        simulate(jobs, "gpu:2x1/4c/64g,k80:2x1/4c/64g,cpu:2x0/20c/64g", "drf", regime="irfsim")
    with pytest.raises(TraceError, match="lacks a way to run"):
        simulate([jobs[0] | {"options": "gpu:1=10"}], cluster(2, 2, 20), "drf", regime="irfsim")
