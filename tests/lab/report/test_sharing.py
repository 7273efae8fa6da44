"""What users held over time, how their work got on, and whom they had reason to envy."""

import numpy as np
import polars as pl
import pytest
from tests.lab.report.example_runs import example_run, job_rows

from gantline.lab.report.frames import ALLOCATIONS, EVENTS, SERIES, StoredRun
from gantline.lab.report.metrics import held_over_time, progress_over_time
from gantline.lab.report.metrics.fairness import _largest, machines, sharing
from gantline.simulator.areas import integral


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
