"""The artifact's Tiresias, Gandiva and Themis: its runs, the program that Themis solves, and what the imitation has nothing like."""

from __future__ import annotations

import csv
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from tests.jobs import job_row
from tests.simulator.references import one_in, reference
from tests.systems.elasticflow.test_reference import histories, names_of, records, simulated, whole

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.systems.elasticflow.imitation.rigid import fairest

SCHEDULES = {"dlas-gpu": "tiresias", "gandiva": "gandiva", "themis": "themis"}


def recorded_ratio(workload: str, cluster: str, schedule: str) -> float:
    for row in csv.DictReader(reference("elasticflow/summary.csv").open()):
        if (row["workload"], row["cluster"], row["schedule"]) == (workload, cluster, schedule):
            return float(row["ratio"])
    raise AssertionError("no such run")


@pytest.mark.parametrize(
    "workload", one_in(4, ["tiny", "25of195", "195", "syn100", "cluster10", "cluster03x300", "cluster06x300", "be0.3"])
)
def test_every_recorded_job_of_a_rigid_baseline(workload: str) -> None:
    """Start, end and verdict of every job, for Tiresias the GPUs over time too; Themis where its program has one answer."""
    names = names_of(workload)
    for (cluster, schedule), rows in records(workload, tuple(SCHEDULES)).items():
        if (workload, schedule) == ("25of195", "themis"):
            continue
        run = simulated(workload, cluster, SCHEDULES[schedule], plain=True)
        jobs, history = {job["job"]: job for job in run.jobs.iter_rows(named=True)}, histories(run)
        for row in rows:
            name = names[int(row["job_idx"])]
            job = jobs[name]
            met = "1" if job["met"] or job["met"] is None else "0"
            assert (whole(job["finish"]), met) == (row["end"], row["met"]), (schedule, cluster, name)
            assert row["start"] in ("", whole(job["first_start"]))
            assert row["gpus"] in ("", history[name])
        assert run.summary["deadline_ratio"] == pytest.approx(recorded_ratio(workload, cluster, schedule), abs=1e-6)


def test_themis_with_many_best_answers_comes_close() -> None:
    """A job that waited long is the worst off even if it always runs; how the others' fractions fall is then up to the solver."""
    told = simulated("25of195", "n4g8", "themis", plain=True).summary
    assert told["deadline_ratio"] == pytest.approx(recorded_ratio("25of195", "n4g8", "themis"), abs=1.5 / 25)
    assert told["average_jct"] == pytest.approx(14488, rel=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_fractions_are_the_fairest(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n, capacity = 6, 8
    waited, work = draw.uniform(0, 2000, n), draw.uniform(10, 4000, n)
    alone, size = work * draw.uniform(1.0, 4.0, n), draw.choice([1, 2, 4, 8], n)
    found = fairest(waited, work, alone, size, capacity)
    x = cp.Variable(n)
    rho = cp.maximum(*((waited[k] + work[k] * cp.inv_pos(x[k])) / alone[k] for k in range(n)))
    best = cp.Problem(cp.Minimize(rho), [x <= 1, size @ x <= capacity]).solve(solver="CLARABEL")
    assert (size * found).sum() <= capacity * (1 + 1e-9)
    assert found.max() <= 1.0
    assert float(((waited + work / found) / alone).max()) == pytest.approx(best, rel=1e-5)


def test_gandiva_leaves_ends_to_the_next_arrival() -> None:
    """While arrivals remain there are rounds at arrivals only: the second job is placed at 1000 s, and the first ended at 104 s."""
    jobs = [job_row(str(k), at=1000.0 * k, deadline=1000.0 * k + 102.0) for k in range(2)]
    run = simulate(jobs, "gpu:1x1", "gandiva", regime="elasticflow", round=60)
    assert run.jobs["finish"].to_list() == [104.0, 1100.0]
    assert run.jobs["met"].to_list() == [False, True]
    assert run.allocations["end"].to_list()[0] == 1000.0


@pytest.mark.parametrize(
    ("policy", "gpus", "settings", "told"),
    [
        ("gandiva", 4, {}, "asks for 4 GPUs"),
        ("themis", 4, {}, "asks for 4 GPUs"),
    ],
)
def test_what_the_original_cannot_do_is_refused(policy: str, gpus: int, settings: dict[str, Any], told: str) -> None:
    jobs = [job_row("a", gpus)]
    with pytest.raises(GantlineError, match=told):
        simulate(jobs, "gpu:1x2", policy, regime="elasticflow", round=60, settings=settings)


# What the imitation has nothing like is refused, and traces that it did not make run in it too.

JOBS = [
    job_row("a", 1, 1000, max_gpus=4, deadline=900, options="gpu:1=1000|gpu:2=600|gpu:4=400"),
    job_row("b", 2, 600, at=10, max_gpus=4, deadline=300, options="gpu:2=600|gpu:4=400"),
    job_row("c", 1, 50, at=10, max_gpus=1, deadline=None, options="gpu:1=50"),
]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"round": None}, "length of a slot"),
        ({"cluster": "gpu:1x4,other:1x4"}, "one device type"),
    ],
)
def test_a_request_that_the_original_cannot_answer_is_refused(changed: dict[str, Any], told: str) -> None:
    given = {"cluster": "gpu:1x4", "policy": "elasticflow", "round": 60.0} | changed
    with pytest.raises(GantlineError, match=told):
        simulate(JOBS, given.pop("cluster"), given.pop("policy"), regime="elasticflow", **given)


def test_a_job_without_a_power_of_two_is_refused() -> None:
    jobs = [job_row("odd", 3, 10, deadline=100)]
    with pytest.raises(GantlineError, match="'odd' has no size that is a power of two"):
        simulate(jobs, "gpu:1x4", "elasticflow", regime="elasticflow", round=60)


def test_a_slot_that_overhead_eats_up_is_refused_instead_of_running_for_ever() -> None:
    """The planned end of the job that waits is a round, in which the other is started again; the original goes on without end."""
    runs = job_row("a", 4, 6, deadline=6, options="gpu:4=6")
    waits = job_row("b", 1, 1, deadline=None, options="gpu:1=1")
    with pytest.raises(GantlineError, match="a slot has only 1"):
        simulate([runs, waits], "gpu:1x4", "elasticflow", regime="elasticflow", round=1, settings={"compat": "elasticflow"})


def test_tiresias_with_a_restart_in_every_round_is_refused_too() -> None:
    """A second's slot means that all start again in every round, and one is made for each demotion that seems near."""
    jobs = [job_row("a", 8, 9000)]
    with pytest.raises(GantlineError, match="a slot has only 1"):
        simulate(jobs, "gpu:1x8", "tiresias", regime="elasticflow", round=1, settings={"limits": "100,200"})


def test_a_job_may_grow_over_more_levels_than_the_original_has() -> None:
    options = "|".join(f"gpu:{2**level}={100_000 / 2**level}" for level in range(11))
    jobs = [job_row("wide", 1, 100_000, max_gpus=1024, options=options)]
    run = simulate(jobs, "gpu:128x8", "elasticflow", regime="elasticflow", round=60, settings={"compat": "elasticflow"})
    assert run.allocations["gpus"].to_list() == [1024]
