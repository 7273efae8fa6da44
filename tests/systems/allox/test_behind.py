"""A gang at the head of a list does not keep machines idle, and does not start later for it."""

from __future__ import annotations

import numpy as np
from tests.jobs import by_job, job_row

from gantline import simulate
from gantline.systems.allox.policies.decision import Decision, Machines, Waiting, behind_gangs

NOTHING = Decision(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), 1)


def waiting(times: list[list[float]], widths: list[list[int]]) -> Waiting:
    time, width = np.array(times, dtype=float), np.array(widths)
    jobs, kinds = time.shape
    numbers = np.arange(jobs)
    return Waiting(
        numbers, np.zeros(jobs, dtype=np.int64), np.zeros(jobs), time, np.zeros((jobs, kinds)), np.zeros((jobs, kinds, 0)), width
    )


def machines(*kinds: list[float]) -> Machines:
    """Machines by kind: when each is free; 100 is now."""
    release = np.array([end for kind in kinds for end in kind])
    kind = np.repeat(np.arange(len(kinds)), [len(kind) for kind in kinds])
    return Machines(kind, release, release <= 100.0, np.zeros(0))


def test_jobs_that_end_before_the_gang_can_start_fill_its_machines_shortest_first() -> None:
    """Two of four machines are idle; the gang of four can start at 150."""
    jobs, kinds = behind_gangs(
        waiting([[80], [60], [40], [30], [20]], [[4], [1], [1], [1], [1]]), machines([100, 100, 130, 150]), NOTHING, 100.0
    )
    assert jobs.tolist() == [4, 3]
    assert kinds.tolist() == [0, 0]


def test_a_longer_job_fills_only_what_the_gang_leaves() -> None:
    """The gang of two can start at 130, when three machines are free: one is spare, once."""
    jobs, _ = behind_gangs(waiting([[80], [500], [400]], [[2], [1], [1]]), machines([100, 130, 130]), NOTHING, 100.0)
    assert jobs.tolist() == [2]


def test_a_job_that_ends_sooner_elsewhere_waits_for_that() -> None:
    found = behind_gangs(waiting([[80, np.inf], [40, 10]], [[2, 1], [1, 1]]), machines([100, 200], [105]), NOTHING, 100.0)
    assert found[0].tolist() == []  # at 115 on the other kind instead of at 140 here


def test_without_a_gang_nothing_is_added() -> None:
    assert behind_gangs(waiting([[5], [7]], [[1], [1]]), machines([100, 100]), NOTHING, 100.0)[0].tolist() == []


def test_filling_shortens_queues_and_delays_no_gang() -> None:
    jobs = [
        job_row("first", 2),
        job_row("gang", 4, 10, at=1),
        job_row("short", 1, 50, at=2),
        job_row("long", 1, 500, at=3),
    ]
    starts = {}
    for fill in (True, False):
        run = simulate(jobs, "1x4", "allox", settings={"fill": fill, "alpha": 1.0})
        starts[fill] = by_job(run, "first_start")
        assert run.summary["unfinished"] == 0
    assert starts[True]["gang"] <= starts[False]["gang"]
    assert starts[True]["short"] == 2
