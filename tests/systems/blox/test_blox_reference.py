"""Every job of Blox' own runs ends in the same second here, is first credited in the same round and is stopped as often."""

from __future__ import annotations

import polars as pl
import pytest
from tests.jobs import job_row
from tests.simulator.references import reference

from gantline import simulate

WORKLOADS = {
    "L2": ("L2_load42_small_1gpu.csv", "32x4"),
    "S": ("S_load4_small_multigpu.csv", "8x4"),
    "eqA": ("A_load6_1gpu.csv", "32x4"),
}
TAGS = [
    "L2_Fifo_AcceptAll",
    "L2_Fifo_LoadBased-1.0x",
    "L2_Fifo_LoadBased-1.2x",
    "L2_Fifo_LoadBased-1.4x",
    "L2_Las_AcceptAll",
    "L2_Las_LoadBased-1.0x",
    "L2_Las_LoadBased-1.4x",
    "S_Fifo_consolidated_fixed",
    "S_Fifo_scattered_fixed",
    "S_Las_consolidated_fixed",
    "S_Las_scattered_fixed",
    "S_Tiresias_scattered_fixed",
    "eqA",
]


@pytest.mark.parametrize("tag", TAGS)
def test_every_job_of_blox_ends_in_the_same_second(tag):
    folder = reference("blox")
    row = pl.read_csv(folder / "summary.csv").row(by_predicate=pl.col("tag") == tag, named=True)
    name, cluster = WORKLOADS[tag.split("_")[0]]
    trace = pl.read_csv(folder / "workloads" / name).select(
        job=pl.col("job_index").cast(pl.String),
        arrival=pl.col("arrival_s").cast(pl.Float64),
        gpus="num_gpus",
        duration=pl.col("total_iterations") * pl.col("iteration_time_s"),
    )
    limit = row["admission"].partition("-")[2].rstrip("x")
    run = simulate(
        trace,
        cluster,
        row["sched"].lower(),
        regime="blox",
        placement="consolidated" if "consolidated" in row["placement"] else "first-free",
        admission=f"load-limit:{limit}" if limit else "accept-all",
        track=(row["lo"], row["hi"]),
    )
    theirs = pl.read_csv(folder / "per_job" / f"{tag}.csv")
    ours = run.jobs.with_columns(pl.col("job").cast(pl.Int64))
    both = theirs.join(ours, left_on="job_id", right_on="job", how="left")
    assert both.height == theirs.height > 0
    assert both["finish"].to_list() == both["finish_s"].cast(pl.Float64).to_list()
    assert both["responsiveness"].to_list() == both["responsiveness_s"].cast(pl.Float64).to_list()
    assert both["preemptions_right"].to_list() == both["preemptions"].to_list()
    if str(row["finished"]) == "True":
        assert run.summary["rounds"] == row["rounds"]
        assert run.summary["preemptions"] == row["preemptions"]


def test_a_job_is_credited_whole_rounds_and_seen_a_round_late():
    """By hand: a job of 400 s that arrives at 10 s is seen at 300, credited at 600, done at the boundary 900."""
    run = simulate([job_row("a", 1, 400.0, at=10.0)], "1x1", "fifo", regime="blox")
    assert run.jobs.select("first_start", "finish", "responsiveness").row(0) == (300.0, 900.0, 590.0)


def test_evictions_made_for_a_job_that_then_does_not_fit_are_kept():
    """By hand: at 600 the newcomer of four GPUs ranks first under LAS and clears two nodes of two, yet needs one node of four."""
    jobs = [job_row("a", 2, 900.0), job_row("b", 2, 900.0)]
    calm = simulate(jobs, "2x2", "las", regime="blox", placement="consolidated")
    assert calm.summary["preemptions"] == 0
    assert calm.jobs["finish"].to_list() == [900.0, 900.0]
    strict = simulate(
        [*jobs, job_row("c", 3, 300.0, at=301.0)],
        "2x2",
        "las",
        regime="blox",
        placement="consolidated",
        until=900,
    )
    assert strict.jobs.filter(pl.col("job") != "c")["preemptions"].to_list() == [1, 1]
