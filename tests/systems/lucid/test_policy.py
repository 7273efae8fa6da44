"""Policy lucid on the engine: trials on the profiler's nodes, pairs by the table, and what changes with the hour."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from tests.jobs import by_job, job_row
from tests.probes.scenario import spans

from gantline.core.errors import GantlineError
from gantline.core.snapshot_json import decode_snapshot
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.lucid.policies.profiler import FreeByNode, ProfilerShare
from gantline.traces.files.speeds import read_pair_profiles

TINY, JUMBO = "walker/Gridworld/64/fp32", "encoder/Encyclopedia/16/fp32"
EAGER = {"quiet": 0.0, "profile": 0.0}  # pairs without the rest


def job(name: str, gpus: int, duration: float, at: float = 0.0, model: str = TINY) -> dict[str, Any]:
    return job_row(name, gpus, duration, at=at, model=model)


def run_lucid(*jobs: dict[str, Any], cluster: str = "4x4", settings: dict[str, Any] | None = None, **more: Any) -> Run:
    return simulate(list(jobs), cluster, "lucid", settings=settings, **{"performance": "pairs", **more})


def finishes(run: Run) -> dict[str, float]:
    return by_job(run, "finish")


def test_a_newcomer_is_tried_on_the_last_node_and_begins_again() -> None:
    run = run_lucid(job("long", 2, 500), job("short", 1, 150))

    assert spans(run, "short") == [(0.0, 150.0, [12], "finished")]  # fewest GPUs first
    assert spans(run, "long") == [(0.0, 200.0, [13, 14], "limit"), (200.0, 700.0, [0, 1], "finished")]


def test_jobs_that_the_profiler_has_no_room_for_are_not_tried() -> None:
    assert spans(run_lucid(job("wide", 8, 100)), "wide") == [(0.0, 100.0, [0, 1, 2, 3, 4, 5, 6, 7], "finished")]


def test_a_job_as_large_as_the_cluster_gets_the_profilers_nodes_too() -> None:
    run = run_lucid(job("small", 1, 300), job("whole", 16, 100, at=5.0), job("later", 1, 50, at=10.0))

    assert finishes(run)["whole"] == 600.0  # after the trial and the run of the first job, which nothing passes in the profiler
    assert spans(run, "later")[0][0] == 600.0


def test_two_tiny_jobs_share_devices_although_others_are_free_and_both_recover() -> None:
    run = run_lucid(job("host", 2, 1000), job("guest", 2, 800, at=10.0), settings=EAGER)
    kept = read_pair_profiles().pairs.speed[0, 0]  # of either, by the made-up table

    assert spans(run, "guest")[0][2] == spans(run, "host")[0][2] == [0, 1]
    assert finishes(run)["guest"] == pytest.approx(10.0 + 800.0 / kept)
    together = finishes(run)["guest"] - 10.0
    assert finishes(run)["host"] == pytest.approx(1000.0 + together * (1.0 - kept))


def test_a_guest_whose_host_has_left_goes_at_full_speed_and_may_host() -> None:
    first, second, third = job("host", 1, 400), job("guest", 1, 700, at=1.0), job("next", 1, 600, at=500.0)
    run = run_lucid(first, second, third, settings=EAGER)

    assert spans(run, "next")[0][2] == spans(run, "guest")[0][2]
    assert finishes(run)["guest"] < 701.0 + 10.0


def test_jumbo_jobs_keep_to_themselves() -> None:
    run = run_lucid(job("a", 1, 900, model=JUMBO), job("b", 1, 900, at=1.0, model=JUMBO), settings=EAGER)

    assert spans(run, "a")[0][2] != spans(run, "b")[0][2]


@pytest.mark.parametrize(("gigabytes", "shared"), [(16, True), (8, False)])
def test_two_jobs_share_only_what_has_memory_for_both(gigabytes: int, shared: bool) -> None:
    jobs = [job(name, 1, 900, at=at) | {"device_memory": 5.0} for name, at in (("a", 0.0), ("b", 1.0))]
    run = run_lucid(*jobs, cluster=f"4x4/{gigabytes}d", settings=EAGER)

    assert (spans(run, "b")[0][2] == spans(run, "a")[0][2]) is shared


def test_a_job_does_not_join_one_that_is_nearly_done() -> None:
    run = run_lucid(job("brief", 1, 100), job("long", 1, 900, at=1.0), settings=EAGER)

    assert spans(run, "long")[0][2] == [1]


def test_a_job_joins_no_other_where_few_are_expected() -> None:
    run = run_lucid(job("a", 1, 900), job("b", 1, 800, at=1.0), settings={"quiet": 2.0, "profile": 0.0})

    assert spans(run, "b")[0][2] == [1]


def test_without_a_table_of_pairs_jobs_have_devices_of_their_own() -> None:
    run = run_lucid(job("a", 1, 900), job("b", 1, 800, at=1.0), settings=EAGER, performance="trace")

    assert spans(run, "b")[0][2] == [1]


def test_a_burst_of_newcomers_borrows_an_idle_node_and_gives_it_back() -> None:
    burst = [job(f"n{k}", 1, 500, at=1.0) for k in range(16)]
    run = run_lucid(*burst, job("after", 4, 100, at=2000.0))

    tried = {device for span in run.allocations.filter(pl.col("reason") == "limit")["devices"].to_list() for device in span}
    assert tried == {8, 9, 10, 11, 12, 13, 14, 15}  # the last node and the one before it
    assert spans(run, "after") == [(2000.0, 2100.0, [12, 13, 14, 15], "finished")]


@pytest.mark.parametrize(("newcomers", "nodes"), [(10, {3}), (11, {2, 3})])
def test_a_node_is_borrowed_for_more_than_ten_newcomers(newcomers: int, nodes: set[int]) -> None:
    run = run_lucid(*(job(f"n{k}", 1, 500, at=1.0) for k in range(newcomers)))
    tried = {device // 4 for span in run.allocations.filter(pl.col("reason") == "limit")["devices"].to_list() for device in span}
    assert tried == nodes


@pytest.mark.parametrize(("waiting", "borrowed"), [(4, -1), (5, 2)])
def test_a_borrowed_node_is_given_back_when_fewer_than_five_wait(waiting: int, borrowed: int) -> None:
    snapshot = decode_snapshot({"cluster": "4x4", "jobs": []})
    profiler = ProfilerShare.now(snapshot, 1, 2)
    assert profiler.resized(FreeByNode(snapshot), waiting, True).borrowed == borrowed
    assert profiler.resized(FreeByNode(snapshot), 0, False).borrowed == 2, "many are expected"


def test_slips_are_repaired_already() -> None:
    with pytest.raises(GantlineError, match="only regime lucid has slips"):
        run_lucid(job("a", 1, 9), settings={"repair": "guest"})
