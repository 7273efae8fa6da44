"""Start and end of every job equal those of Tiresias' own simulator."""

from __future__ import annotations

import polars as pl
import pytest
from tests.jobs import job_row
from tests.simulator.references import one_in, reference

from gantline import simulate
from gantline.systems.tiresias.policies import gittins_table

SCHEDULES = {
    "fifo": ("fifo", {}),
    "fjf": ("fifo", {"backfill": "skip"}),
    "sjf": ("smallest", {}),
    "shortest": ("srtf", {}),
    "shortest-gpu": ("srsf", {}),
    "dlas": ("tiresias", {"service": "time"}),
    "dlas-gpu": ("tiresias", {}),
    "dlas-gpu-pack": ("tiresias", {}),
    "dlas-gpu-05": ("tiresias", {"promote": 0.5}),
    "dlas-gpu-1": ("tiresias", {"promote": 1.0}),
    "dlas-gpu-2": ("tiresias", {"promote": 2.0}),
    "dlas-gpu-4": ("tiresias", {"promote": 4.0}),
    "dlas-gpu-8": ("tiresias", {"promote": 8.0}),
    "dlas-gpu-gittins-8": ("tiresias", {"promote": 8.0}),
    "dlas-gpu-gittins": ("tiresias", {"gittins": "true"}),
}


def trace_of(name: str) -> pl.DataFrame:
    return pl.read_csv(reference("tiresias") / name).select(
        job=pl.col("job_id").cast(pl.String),
        arrival=pl.col("submit_time").cast(pl.Float64),
        gpus="num_gpu",
        duration=pl.col("duration").cast(pl.Float64),
        model="model_name",
    )


def run_schedule(schedule: str, trace: str, cluster: str, scheme: str = "count"):
    policy, settings = SCHEDULES[schedule]
    if "gittins" in settings:
        settings = {**settings, "sample": f"@{reference('tiresias') / 'yarn-gput1000.csv'}"}
    placement = "first-node" if scheme == "yarn" and policy == "fifo" else "first-free"  # the others only count, whatever the scheme
    return simulate(trace_of(trace), cluster, policy, settings=settings, regime="tiresias", placement=placement)


@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name not in {"dlas-gpu-05", "dlas-gpu-2", "dlas-gpu-4"}])
def test_every_job_starts_and_ends_in_the_same_second(schedule):
    schemes = {"dlas-gpu": ["count", "yarn", "random"], "fifo": ["count", "yarn"], "fjf": ["count", "yarn"]}.get(schedule, ["count"])
    golden = pl.read_csv(reference("tiresias") / "per_job.csv")
    for scheme in schemes:
        ours = run_schedule(schedule, "60_job.csv", "4x4", scheme).jobs.with_columns(pl.col("job").cast(pl.Int64))
        theirs = golden.filter((pl.col("schedule") == schedule) & (pl.col("scheme") == scheme))
        both = theirs.join(ours, left_on="job_id", right_on="job")
        assert both.height == 60
        assert both["first_start"].to_list() == both["start_time"].cast(pl.Float64).to_list()
        assert both["finish"].to_list() == both["end_time"].cast(pl.Float64).to_list()


@pytest.mark.parametrize(
    "schedule", one_in(6, [name for name in SCHEDULES if name not in {"dlas-gpu-pack", "dlas-gpu-8", "dlas-gpu-gittins-8"}])
)
def test_the_averages_of_480_jobs_agree_to_the_last_digit(schedule):
    results = pl.read_csv(reference("tiresias") / "results.csv", infer_schema_length=1000)
    theirs = results.row(
        by_predicate=(pl.col("trace") == "480synth") & (pl.col("scheme") == "count") & (pl.col("schedule") == schedule), named=True
    )
    check_averages(run_schedule(schedule, "480_synth_job.csv", "15x4"), theirs)


@pytest.mark.parametrize("schedule", ["fifo", "fjf"])
def test_first_node_placement_is_that_of_yarn(schedule):
    results = pl.read_csv(reference("tiresias") / "results.csv", infer_schema_length=1000)
    theirs = results.row(
        by_predicate=(pl.col("trace") == "480synth") & (pl.col("scheme") == "yarn") & (pl.col("schedule") == schedule), named=True
    )
    check_averages(run_schedule(schedule, "480_synth_job.csv", "15x4", "yarn"), theirs)


def check_averages(run, theirs):
    assert run.summary["average_jct"] == pytest.approx(theirs["avg_jct_s"], abs=0.006)
    assert run.summary["median_jct"] == theirs["median_jct_s"]
    assert run.summary["makespan"] == theirs["makespan_s"]


def test_a_long_job_is_demoted_and_gives_way():
    """By hand: one GPU, limit 3250 s. The long job runs until its demotion is seen, then the newcomer goes first."""
    jobs = [job_row("long", 1, 5000.0), job_row("new", 1, 500.0, at=100.0)]
    run = simulate(jobs, "1x1", "tiresias", regime="tiresias")
    assert run.jobs.select("job", "first_start", "finish").rows() == [("long", 0.0, 5500.0), ("new", 3250.0, 3750.0)]


def test_jobs_are_demoted_in_time_although_nobody_waits():
    """By hand: the pair is demoted at 1,625 s and the single at 3,250, so at 3,400 the pair stands first and the single makes room."""
    jobs = [
        job_row("single", 1, 10_000.0),
        job_row("pair", 2, 10_000.0),
        job_row("new", 4, at=3400.0),
    ]
    run = simulate(jobs, "1x6", "tiresias", regime="tiresias")
    assert run.jobs.select("job", "finish").rows() == [("single", 10_100.0), ("pair", 10_000.0), ("new", 3500.0)]


def test_halves_are_rounded_up_in_the_gittins_table_as_in_the_originals_python():
    """One of 64 samples in reach: 1/64 = 0.015625, which its Python 2 rounds to 0.01563."""
    table = gittins_table((1.0, *[100_000.0] * 63), 3250.0)
    assert table[0] == (1.0, round(0.01563 * 1_000_000 / ((1 + 3250 * 63) // 64), 4))
