"""Regime lucid: each of its rules in a small scene."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.systems.lucid.lucid_world import BEGIN, write_clusters, write_profiles

from gantline.core.errors import GantlineError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.lucid.imitation.jobs import LucidNodes
from gantline.systems.lucid.imitation.profiling import NodeLender, NodeLoan

Jobs = list[dict[str, Any]]


def run_lucid(folder: Path, jobs: Jobs, policy: str = "lucid", **world: Any) -> Run:
    profiles = write_profiles(folder, jobs, **world)
    return simulate(jobs, write_clusters(folder), policy, regime="lucid", profiles=str(profiles))


def rows_of(run: Run) -> dict[str, dict[str, Any]]:
    return {row["job"]: row for row in run.reported.rows(named=True)}


def job(name: str, gpus: int, duration: int, at: int = 0, model: str = "Wren/Birds/32/fp32", vc: str = "vcYVn") -> dict[str, Any]:
    return {"job": name, "arrival": float(BEGIN + at), "gpus": gpus, "duration": float(duration), "model": model, "queue": vc}


def test_a_job_that_ends_while_it_is_profiled_is_done(tmp_path: Path) -> None:
    rows = rows_of(run_lucid(tmp_path, [job("short", 1, 200), job("long", 1, 201)]))

    assert (rows["short"]["finish"], rows["short"]["done_in_profiling"]) == (BEGIN + 200, True)
    assert (rows["long"]["finish"], rows["long"]["done_in_profiling"]) == (BEGIN + 202, False)  # and the second that follows the work


@pytest.mark.parametrize(("waiting", "lent"), [(10, []), (11, [BEGIN + 10])])
def test_a_node_is_lent_to_the_profiler_when_more_than_ten_wait(tmp_path: Path, waiting: int, lent: list[int]) -> None:
    wide = [job(f"wide{k}", 8, 500) for k in range(2)]  # all of its two nodes
    newcomers = [job(f"new{k}", 1, 500, at=10) for k in range(waiting)]
    run = run_lucid(tmp_path, [*wide, *newcomers, job("last", 1, 30, at=6000)])

    assert [time for time, nodes in run.summary.get("loans", []) if nodes == 1] == lent


def test_a_guest_keeps_the_rate_of_the_pair_after_its_host_has_left(tmp_path: Path) -> None:
    rows = rows_of(run_lucid(tmp_path, [job("host", 1, 400), job("guest", 1, 700, at=1)], known=True))

    assert rows["guest"]["rate_changes"] == f"{BEGIN + 1}:0.97:host"
    assert rows["guest"]["finish"] == BEGIN + 1 + 722 + 1  # 700 seconds of work at 0.97, to the end


def test_a_guest_goes_at_full_speed_and_hosts_once_that_is_repaired(tmp_path: Path) -> None:
    jobs = [job("host", 1, 400), job("guest", 1, 700, at=1), job("next", 1, 700, at=500)]
    profiles = write_profiles(tmp_path, jobs, known=True)
    run = simulate(jobs, write_clusters(tmp_path), "lucid", settings={"repair": "guest,second"}, regime="lucid", profiles=str(profiles))
    rows = rows_of(run)

    assert rows["guest"]["rate_changes"].split(";")[1:] == [f"{rows['host']['finish']}:1:", f"{BEGIN + 500}:0.93:next"]


def test_a_node_that_was_not_lent_does_not_come_back_once_that_is_repaired() -> None:
    def nodes_after(only_lent: bool) -> int:
        nodes = LucidNodes([list(range(8)), list(range(8, 16))])
        lender = NodeLender([NodeLoan(10, 1), NodeLoan(20, -1)], range(8), only_lent=only_lent)
        assert nodes.take(16) is not None  # none is idle
        lender.act(20, nodes)
        return len(nodes.nodes)

    assert (nodes_after(only_lent=False), nodes_after(only_lent=True)) == (3, 2)


def test_jobs_of_clusters_that_are_not_there_are_turned_away_and_counted(tmp_path: Path) -> None:
    run = run_lucid(tmp_path, [job("a", 1, 300), job("b", 1, 300, vc="vcElse")], "fifo")

    assert run.summary["unknown_vc"] == 1
    assert run.jobs.filter(pl.col("job") == "b")["state"].to_list() == ["rejected"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"cluster": "4x8"}, "is of no pool"),
        ({"profiles": ""}, "needs measurements and predictions"),
        ({"settings": {"repair": "everything"}}, "no slip is called 'everything'"),
        ({"jobs": [job("a", 1, 300) | {"arrival": BEGIN + 0.5}]}, "whole seconds"),
        ({"jobs": [job("a", 1, 300, model="Owl/Nights/1/amp")]}, "trains 'Owl/Nights/1/amp', which is not measured"),
        ({"jobs": [job("b", 1, 300)]}, "no prediction for job 'b'"),
    ],
)
def test_what_the_original_could_not_run_is_refused(tmp_path: Path, change: dict[str, Any], what: str) -> None:
    write_profiles(tmp_path, [job("a", 1, 300)])
    options = {"jobs": [job("a", 1, 300)], "cluster": write_clusters(tmp_path), "policy": "lucid", "profiles": str(tmp_path)} | change

    with pytest.raises(GantlineError, match=what):
        simulate(options.pop("jobs"), options.pop("cluster"), options.pop("policy"), regime="lucid", **options)
