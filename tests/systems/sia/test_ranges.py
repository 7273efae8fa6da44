"""A job that names a range and lists no sizes is given other sizes by Sia, as one that lists them is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.engine.assigning import watched
from tests.jobs import held_by

from gantline.core.inputs import NodeEvent
from gantline.policies.registry import find_policy
from gantline.simulator.simulate import simulate
from gantline.systems.sia.policies.policy import read_variants


def ranged(name: str, least: int, most: int, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": least, "duration": 600.0, "min_gpus": least, "max_gpus": most, **more}


def sizes_given(jobs: list[dict[str, Any]], cluster: str, **options: Any) -> list[tuple[str, float, int]]:
    run = simulate(jobs, cluster, "sia", round=60, **options)
    assert run.summary["completed"] == len(jobs)
    return [tuple(row) for row in run.allocations.sort("start", "job").select("job", "start", "gpus").iter_rows()]


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
def test_a_lone_job_has_the_most_of_its_range(executor: str) -> None:
    assert sizes_given([ranged("a", 1, 3)], "1x4", executor=executor) == [("a", 0.0, 3)]


def test_a_job_shrinks_for_a_newcomer_and_grows_when_it_has_gone() -> None:
    jobs = [ranged("a", 1, 4, duration=2000.0), {"job": "b", "arrival": 60.0, "gpus": 2, "duration": 120.0}]
    given = sizes_given(jobs, "1x4")
    assert [gpus for job, _, gpus in given if job == "a"] == [4, 2, 4]


def test_a_range_is_worth_what_its_list_is() -> None:
    """The same sizes and speeds, written down as options or named as a range, give the same schedule."""
    listed = {"options": "gpu:1=600|gpu:2=300|gpu:4=150"}
    in_range = [ranged("a", 1, 4), ranged("b", 1, 4, arrival=61.0), ranged("c", 2, 2, arrival=130.0)]
    as_list = [job | listed if job["min_gpus"] < job["max_gpus"] else job for job in in_range]
    assert sizes_given(in_range, "gpu:2x2") == sizes_given(as_list, "gpu:2x2")


def test_of_a_wide_range_come_the_configurations_of_the_paper_its_ends_and_the_request() -> None:
    seen: list[list[tuple[int, int]]] = []

    def look(snapshot):
        variants = read_variants(snapshot, np.zeros(len(snapshot.jobs), dtype=bool))
        seen.append(list(zip(variants.columns.group.tolist(), variants.columns.gpus.tolist())))

    simulate([ranged("a", 3, 30, gpus=5)], "gpu:4x8", watched(find_policy("sia"), look), until=1.0)
    assert seen[0] == [(0, gpus) for gpus in (3, 4, 5, 8, 16, 24, 30)]


def test_a_reservation_has_its_own_size() -> None:
    jobs = [ranged("a", 1, 4, gpus=2), ranged("b", 1, 4)]
    run = simulate(jobs, "1x4", "sia", settings={"reserved": "a"}, round=60)
    assert set(held_by(run, "a")["gpus"]) == {2}


def test_a_range_waits_while_its_only_node_is_down_and_costs_no_turn() -> None:
    events = [NodeEvent(60.0, "node0", "down"), NodeEvent(300.0, "node0", "up")]
    run = simulate([ranged("a", 1, 4, duration=2000.0)], "gpu:1x8", "sia", round=60, node_events=events)
    assert run.summary["completed"] == 1
    assert not run.incidents
