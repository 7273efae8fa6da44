"""Fairness: who got less than others."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.report.example_runs import example_run, job_rows

from gantline.lab.report.frames import ALLOCATIONS, EVENTS, SERIES, StoredRun, jobs_of_frame
from gantline.lab.report.metrics import (
    finish_time_fairness,
    fragmentation,
    fragmentation_series,
    held_over_time,
    jain_index,
    progress_over_time,
    received_share,
)
from gantline.lab.report.metrics.fairness import _largest, machines, present_over_life, sharing
from gantline.simulator.areas import integral


@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_jain_lies_between_one_over_n_and_one(values):
    assert 1 / len(values) - 1e-9 <= jain_index(pl.Series(values)) <= 1 + 1e-9


def test_jain_at_its_ends():
    assert jain_index(pl.Series([3.0, 3.0, 3.0])) == pytest.approx(1.0)
    assert jain_index(pl.Series([1.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert math.isnan(jain_index(pl.Series([], dtype=pl.Float64)))


def test_a_user_receives_the_share_of_the_gpu_time_they_asked_for():
    jobs = job_rows(
        {"user": "ann", "gpus": 2, "finish": 10.0, "gpu_seconds": 20.0},  # never waited
        {"user": "bob", "gpus": 1, "finish": 10.0, "gpu_seconds": 5.0},  # waited half the time
        {"user": "bob", "gpus": 1, "arrival": 10.0, "state": "waiting"},  # still waits at 20
        {"user": "cy", "gpus": 8, "state": "rejected"},
    )
    shares = dict(received_share(jobs, 20.0, "user").iter_rows())
    assert shares == {"ann": 1.0, "bob": 0.25}


def test_presence_is_averaged_over_the_life_of_each_job():
    jobs = job_rows({"arrival": 0.0, "finish": 10.0}, {"arrival": 5.0, "finish": 15.0}, {"state": "rejected"})
    assert present_over_life(jobs_of_frame(jobs.head(2)), jobs_of_frame(jobs), 15.0).tolist() == [1.5, 1.5]


@given(st.integers(0, 30))
def test_presence_agrees_with_adding_up_overlaps(seed):
    jobs = example_run(jobs=15, seed=seed).jobs
    born, gone = jobs["arrival"].to_numpy(), jobs["finish"].to_numpy()
    overlap = np.clip(np.minimum.outer(gone, gone) - np.maximum.outer(born, born), 0, None)
    assert present_over_life(jobs_of_frame(jobs), jobs_of_frame(jobs), 1e9) == pytest.approx(overlap.sum(axis=1) / (gone - born))


def test_rho_compares_with_a_private_share_of_the_cluster():
    # Two jobs of 4 GPUs share 4 GPUs for all their life: alone on half of them each would take twice its duration.
    jobs = job_rows(
        {"gpus": 4, "duration": 10.0, "finish": 20.0, "jct": 20.0},
        {"gpus": 4, "duration": 10.0, "finish": 20.0, "jct": 20.0},
    )
    jobs = jobs_of_frame(jobs)
    assert finish_time_fairness(jobs, jobs, 4, 20.0).tolist() == [1.0, 1.0]
    assert finish_time_fairness(jobs, jobs, 4, 20.0, "contention").tolist() == [2.0, 2.0]
    assert finish_time_fairness(jobs, jobs, 1, 20.0, "static").tolist() == [1.0, 1.0]


def test_a_share_beyond_the_request_does_not_speed_a_job_up():
    jobs = jobs_of_frame(job_rows({"gpus": 1, "duration": 10.0, "finish": 30.0, "jct": 30.0}))
    assert finish_time_fairness(jobs, jobs, 64, 30.0).tolist() == [3.0]


def test_the_static_definition_counts_everyone_who_was_there():
    everyone = job_rows(*[{"arrival": 0.0, "finish": 10.0, "jct": 10.0, "duration": 5.0, "gpus": 1}] * 8)
    rho = finish_time_fairness(jobs_of_frame(everyone.head(2)), jobs_of_frame(everyone), 4.0, 10.0, "static")
    assert rho.tolist() == [1.0, 1.0]  # 10 s against 5 s on a cluster that eight jobs share four ways


# What users held over time, how their work got on, and whom they had reason to envy.


def two_users() -> StoredRun:
    """Ann holds both GPUs from 0 to 10 while bob waits from 4 on; then bob has one, and a CPU node, to 30."""
    jobs = job_rows(
        {"user": "ann", "gpus": 2, "duration": 10.0, "arrival": 0.0, "finish": 10.0, "jct": 10.0},
        {"user": "bob", "gpus": 1, "duration": 20.0, "arrival": 4.0, "finish": 30.0, "jct": 26.0},
        {"user": "bob", "gpus": 1, "duration": 5.0, "arrival": 10.0, "finish": 30.0, "jct": 20.0},
    )
    spans = [
        ("j0", 0.0, 10.0, "gpu", [0], [0, 1], 2, "finished"),
        ("j1", 10.0, 30.0, "gpu", [0], [0], 1, "finished"),
        ("j2", 10.0, 30.0, "cpu", [1], [], 0, "finished"),
    ]
    allocations = pl.DataFrame(spans, schema=ALLOCATIONS, orient="row")
    summary = {"cluster": "gpu:1x2,cpu:1x0/20c", "end": 30.0}
    return StoredRun(jobs, allocations, pl.DataFrame(schema=EVENTS), pl.DataFrame(schema=SERIES), summary)


def test_a_node_of_cores_counts_as_a_machine() -> None:
    run = two_users()
    assert machines(run) == 3.0
    times, held = held_over_time(run)["bob"]
    assert (times.tolist(), held.tolist()) == ([10.0, 30.0], [2.0, 0.0])


def test_shares_and_envy_are_means_over_time() -> None:
    rows = {row["user"]: row for row in sharing(two_users()).iter_rows(named=True)}
    assert rows["ann"]["share"] == pytest.approx(20 / 90)
    assert rows["bob"]["share"] == pytest.approx(40 / 90)
    assert (rows["ann"]["waited"], rows["ann"]["envy"], rows["ann"]["share_waiting"]) == (0.0, 0.0, None)
    # From 4 to 10 bob waits with nothing while ann holds two machines of three.
    assert (rows["bob"]["waited"], rows["bob"]["share_waiting"]) == (6.0, 0.0)
    assert rows["bob"]["envy"] == pytest.approx(2 / 3)


def test_a_slow_device_makes_slow_progress() -> None:
    work = {user: integral(*steps, np.array([10.0, 20.0, 30.0])).tolist() for user, steps in progress_over_time(two_users()).items()}
    assert work["ann"] == [20.0, 20.0, 20.0]  # two GPUs for ten seconds
    assert work["bob"] == [0.0, 12.5, 25.0]  # a GPU, and five seconds' worth of work spread over twenty on the CPU


def test_the_work_of_all_users_adds_up() -> None:
    run = example_run(jobs=80, gap=300)
    done = sum(integral(*steps, np.array([1e9]))[0] for steps in progress_over_time(run).values())
    assert done == pytest.approx((run.jobs["duration"] * run.jobs["gpus"]).sum())
    shares = sharing(run)
    assert shares["user"].to_list() == ["ann", "bob", "cy"]
    assert shares["share"].sum() <= 1.0
    assert shares["envy"].is_between(0.0, 1.0).all()


def test_envy_agrees_with_looking_at_every_instant() -> None:
    run = example_run(jobs=60, gap=200)
    end = float(run.jobs["finish"].max())  # type: ignore[arg-type]
    moments = np.linspace(float(run.jobs["arrival"].min()), end, 20_001)[:-1] + 0.5  # type: ignore[arg-type]
    held = {}
    for user, (times, values) in held_over_time(run).items():
        row = np.searchsorted(times, moments, "right") - 1
        held[user] = np.where(row < 0, 0.0, values[row])
    most = np.max(list(held.values()), axis=0)
    for user, envy in sharing(run).select("user", "envy").iter_rows():
        mine = run.jobs.filter(pl.col("user") == user)
        waits = np.zeros(len(moments), dtype=bool)
        for arrival, start in mine.select("arrival", "first_start").iter_rows():
            waits |= (moments >= arrival) & (moments < start)
        assert envy == pytest.approx(((most - held[user])[waits] / 8).mean(), rel=0.02)


def test_the_largest_holder_at_any_moment_is_the_largest_of_all() -> None:
    """Envy is measured against it, whoever it is and however many there are."""
    run = example_run(jobs=120, gap=200, users=[f"user {number}" for number in range(7)])
    held = held_over_time(run)
    moments = np.linspace(0.0, 40_000.0, 500)
    levels = [np.append(0.0, values)[np.searchsorted(times, moments, side="right")] for times, values in held.values()]
    times, most = _largest(held)
    assert np.append(0.0, most)[np.searchsorted(times, moments, side="right")].tolist() == np.max(levels, axis=0).tolist()
    assert (np.diff(most) != 0.0).all()  # a row only where it changes


# Fragmentation: free GPUs that waiting jobs cannot use.


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
