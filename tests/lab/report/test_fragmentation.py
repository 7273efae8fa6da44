"""Fragmentation: free GPUs that waiting jobs cannot use."""

import polars as pl
import pytest
from tests.lab.report.example_runs import example_run, job_rows

from gantline.lab.report.frames import ALLOCATIONS, EVENTS, SERIES, StoredRun
from gantline.lab.report.metrics import fragmentation, fragmentation_series


def run_of(jobs, *gangs):
    """A run on the given allocations: (job, start, end, devices)."""
    rows = [(job, start, end, "gpu", [], devices, len(devices), "finished") for job, start, end, devices in gangs]
    return StoredRun(
        jobs,
        pl.DataFrame(rows, schema=ALLOCATIONS, orient="row"),
        pl.DataFrame(schema=EVENTS),
        pl.DataFrame(schema=SERIES),
    )


def at(series, moment):
    return series.filter(pl.col("time") <= moment).row(-1, named=True)


def test_half_free_nodes_strand_a_gang_that_needs_a_whole_one():
    jobs = job_rows({"finish": 10.0}, {"finish": 10.0}, {"gpus": 4, "arrival": 2.0, "state": "waiting"})
    series = fragmentation_series(run_of(jobs, ("j0", 0, 10, [0, 1]), ("j1", 0, 10, [4, 5])), [4, 4])
    assert at(series, 1)["fragmentation"] == 0.0  # no job waits
    assert at(series, 5)["free"] == 4
    assert at(series, 5)["fragmentation"] == 1.0  # two and two do not make a four on one node
    assert at(series, 10)["fragmentation"] == 0.0  # both nodes are whole again
    assert fragmentation(series, 0, 10) == 1.0


def test_the_share_is_a_mean_over_the_waiting_jobs():
    jobs = job_rows({"finish": 9.0}, {"gpus": 2, "state": "waiting"}, {"gpus": 4, "state": "waiting"})
    series = fragmentation_series(run_of(jobs, ("j0", 0, 9, [0])), [4])
    assert at(series, 1)["free"] == 3
    assert at(series, 1)["stranded"] == 1.5  # of no use to one of the two waiting jobs
    assert at(series, 1)["fragmentation"] == 0.5


def test_a_gang_larger_than_a_node_wants_whole_nodes():
    jobs = job_rows({"finish": 9.0}, {"gpus": 8, "state": "waiting"})
    series = fragmentation_series(run_of(jobs, ("j0", 0, 9, [0])), [4, 4])
    assert at(series, 1)["stranded"] == 3.0  # the untouched node would serve, the other three GPUs would not


def test_a_preempted_job_waits_again_and_a_finished_one_does_not():
    jobs = job_rows({"gpus": 2, "finish": 30.0}, {"gpus": 1, "finish": 20.0})
    series = fragmentation_series(run_of(jobs, ("j0", 0, 10, [0, 1]), ("j1", 10, 20, [0]), ("j0", 20, 30, [0, 1])), [2])
    assert [at(series, t)["waiting"] for t in (5, 15, 25, 30)] == [1, 1, 0, 0]
    assert at(series, 15)["stranded"] == 1.0


def test_a_shared_gpu_is_free_when_its_last_holder_leaves():
    jobs = job_rows({"finish": 10.0}, {"finish": 20.0})
    series = fragmentation_series(run_of(jobs, ("j0", 0, 10, [0]), ("j1", 0, 20, [0])), [1])
    assert [at(series, t)["free"] for t in (5, 15, 20)] == [0, 0, 1]


def test_free_and_waiting_agree_with_the_series_of_a_run():
    run = example_run(jobs=80, nodes=3, seed=4, gap=400)
    swept = fragmentation_series(run, [4, 4, 4])
    joined = run.series.join(swept, on="time")
    assert joined.height == run.series.height
    assert (joined["total_gpus"] - joined["busy_gpus"] - joined["free"]).abs().max() == 0
    assert (joined["queued"] - joined["waiting"]).abs().max() == 0
    assert 0 < fragmentation(swept, 0, float(run.series["time"][-1])) < 1
    assert swept["fragmentation"].max() == pytest.approx(1.0)
