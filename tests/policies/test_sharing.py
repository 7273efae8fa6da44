"""Jobs that ask for a part of a GPU share one, in the order of another policy, and never more than there is of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.jobs import by_job

from gantline import simulate
from gantline.cli.main import main
from gantline.core.errors import UsageError
from gantline.simulator.run import Run
from gantline.traces.importers import import_trace

FIXTURES = Path(__file__).parents[1] / "traces" / "fixtures"


def pod(name: str, demand: float, duration: float = 100.0, at: float = 0.0, gpus: int = 1, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": at, "gpus": gpus, "duration": duration, "gpu_demand": demand, **more}


def shared(jobs: list[dict[str, Any]], cluster: str, order: str = "fifo", **more: Any) -> Run:
    return simulate(jobs, cluster, "sharing", settings={"order": order}, **more)


def finishes(run: Run) -> dict[str, float]:
    return by_job(run, "finish")


def test_parts_that_fit_run_together_at_full_speed_and_the_rest_waits() -> None:
    jobs = [pod("a", 0.5), pod("b", 0.3), pod("c", 0.3), pod("d", 0.2)]
    assert finishes(shared(jobs, "1x1")) == {"a": 100.0, "b": 100.0, "c": 200.0, "d": 200.0}  # nobody passes c
    assert finishes(shared(jobs, "1x1", "srtf")) == {"a": 100.0, "b": 100.0, "c": 200.0, "d": 100.0}  # d does
    assert finishes(simulate(jobs, "1x1", "fifo")) == {"a": 100.0, "b": 200.0, "c": 300.0, "d": 400.0}


def test_a_newcomer_joins_the_fullest_gpu_on_which_it_fits() -> None:
    jobs = [pod("a", 0.5), pod("b", 0.7), pod("whole", 1.0, at=5.0), pod("c", 0.3, at=10.0), pod("d", 0.5, at=10.0)]
    run = shared(jobs, "1x3")
    places = {row["job"]: row["devices"] for row in run.allocations.iter_rows(named=True)}
    assert places == {"a": [0], "b": [1], "whole": [2], "c": [1], "d": [0]}
    assert run.jobs["restarts"].sum() == 0


def test_a_whole_job_gets_devices_of_its_own_on_one_node() -> None:
    jobs = [pod("a", 0.5), pod("pair", 2.0, gpus=2, at=1.0), pod("b", 0.5, at=2.0)]
    run = shared(jobs, "2x2")
    places = {row["job"]: row["devices"] for row in run.allocations.iter_rows(named=True)}
    assert places == {"a": [0], "pair": [2, 3], "b": [0]}
    tight = shared([pod("pair", 2.0, gpus=2)], "gpu:1x4,gpu:1x2")
    assert tight.allocations["devices"].to_list() == [[4, 5]]


def test_an_order_that_preempts_takes_a_part_from_who_is_behind() -> None:
    jobs = [pod("long", 0.6, 1000.0), pod("other", 0.4, 1000.0), pod("short", 0.5, 10.0, at=100.0)]
    run = shared(jobs, "1x1", "srtf")
    assert finishes(run) == {"long": 1010.0, "other": 1000.0, "short": 110.0}
    assert finishes(shared(jobs, "1x1"))["short"] == pytest.approx(1010.0)


def test_a_demand_beyond_what_is_asked_for_is_refused() -> None:
    with pytest.raises(UsageError, match=r"needs 1\.5 of 1 GPUs"):
        shared([pod("odd", 1.5), pod("even", 0.5)], "1x1")


def test_the_order_has_parameters_of_its_own() -> None:
    jobs = [pod("big", 0.6, gpus=1), pod("wide", 2.0, 10.0, gpus=2), pod("late", 0.3, 10.0)]
    strict, passing = (finishes(shared(jobs, "1x2", order)) for order in ("fifo", "fifo backfill=easy"))

    assert strict["late"] > passing["late"]


def test_what_is_free_is_taken_before_anybody_is_stopped() -> None:
    jobs = [pod("long", 0.6, 1000.0), pod("short", 0.6, 10.0, at=100.0), pod("pair", 2.0, 10.0, at=200.0, gpus=2)]
    run = shared(jobs, "2x2", "srtf")
    assert run.jobs["preemptions"].sum() == 0
    assert {row["job"]: row["devices"] for row in run.allocations.iter_rows(named=True)} == {"long": [0], "short": [1], "pair": [2, 3]}


def test_cpus_and_memory_bound_what_shares_a_node() -> None:
    for bound in ({"cpus": 4.0}, {"memory": 32.0}):
        jobs = [pod(name, 0.25, **bound) for name in "abc"]
        assert finishes(shared(jobs, "gpu:1x1/8c/64g")) == {"a": 100.0, "b": 100.0, "c": 200.0}


def test_memory_is_taken_from_who_is_behind() -> None:
    jobs = [pod("long", 0.5, 1000.0, memory=40.0), pod("short", 0.5, 10.0, at=100.0, memory=40.0)]
    assert finishes(shared(jobs, "gpu:1x2/8c/64g", "srtf")) == {"long": 1010.0, "short": 110.0}


def test_an_order_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="its own order"):
        shared([pod("a", 0.5)], "1x1", "sharing")
    assert "does not rank" in shared([pod("a", 0.5)], "1x1", "equal-share").incidents[0]


def test_the_pods_of_a_log_share_what_the_importer_kept() -> None:
    trace = import_trace("openb", FIXTURES / "openb.csv")
    assert any("--policy sharing packs them" in note for note in trace.notes)
    assert trace.frame["gpu_demand"].min() < 1.0


PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,4000,22888,1,320,,BE,Running,9000100,9000700,9000100
p1,8000,30517,1,470,,LS,Failed,9000160,9000460,9000161
p2,8000,30517,1,470,,BE,Pending,9000200,9000260,
p3,4000,15258,1,220,,BE,Succeeded,9000260,9000360,9000260
p4,8000,16384,2,1000,,LS,Running,9000300,9000400,9000320
"""


def test_a_pod_list_is_shared_on_the_command_line_and_told_where_it_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "openb_pod_list.csv").write_text(PODS, encoding="utf-8")
    trace, held = str(tmp_path / "jobs.csv"), tmp_path / "held.csv"
    assert main(["trace", "import", "openb", str(tmp_path / "openb_pod_list.csv"), trace]) == 0
    capsys.readouterr()
    told = "3 of 4 jobs need a part of a GPU and got a whole one, because fifo does not share GPUs (try --policy sharing)"
    assert main(["simulate", trace, "--cluster", "1x2", "--policy", "fifo"]) == 0
    said = capsys.readouterr().err
    assert told in said
    assert "unknown columns" not in said
    assert main(["compare", trace, "--cluster", "1x2", "--policy", "fifo,sharing", "--workers", "1"]) == 0
    said = capsys.readouterr().err
    assert told in said
    assert "sharing does not share" not in said
    assert main(["simulate", trace, "--cluster", "1x2", "--policy", "sharing", "--allocations-out", str(held)]) == 0
    assert "got a whole one" not in capsys.readouterr().err
    rows = {row["job"]: row for row in pl.read_csv(held).iter_rows(named=True)}
    assert {rows[name]["devices"] for name in ("p0", "p1")} == {rows["p0"]["devices"]}
    assert rows["p1"]["start"] < rows["p0"]["end"]


@FEWER
@given(
    rows=st.lists(
        st.tuples(st.sampled_from([0.1, 0.25, 0.5, 0.6, 1.0, 2.0]), st.integers(1, 60), st.integers(0, 120)), min_size=1, max_size=12
    ),
    order=st.sampled_from(["fifo", "srtf", "las"]),
    cluster=st.sampled_from(["1x2", "2x2", "1x3"]),
    executor=st.sampled_from(["instant", "acknowledged"]),
)
def test_no_gpu_is_ever_given_out_twice_over(rows: list[tuple[float, int, int]], order: str, cluster: str, executor: str) -> None:
    jobs = [
        pod(f"j{number}", demand, float(duration), float(at), gpus=max(1, int(demand)))
        for number, (demand, duration, at) in enumerate(sorted(rows, key=lambda row: row[2]))
    ]
    run = shared(jobs, cluster, order, round=10.0, executor=executor)
    assert run.summary["unfinished"] == 0
    assert run.incidents == ()
    demand = {job["job"]: min(1.0, job["gpu_demand"]) for job in jobs}
    for held in run.allocations.explode("devices").partition_by("devices"):
        for start in held["start"]:
            at = held.filter((pl.col("start") <= start) & (pl.col("end") > start))
            assert sum(demand[job] for job in at["job"]) <= 1.0 + 1e-6


def test_fgd_leaves_whole_gpus_where_the_fullest_device_would_break_one_up() -> None:
    # most jobs need a whole GPU: six tenths go beside the three tenths although another device would be filled better
    jobs = [pod("a", 0.3), pod("b", 0.6), *(pod(f"w{at}", 1.0, at=1.0) for at in range(3))]
    run = simulate(jobs, "2x2", "sharing", settings={"seats": "fgd"})
    places = {row["job"]: row["devices"] for row in run.allocations.iter_rows(named=True)}
    assert places["a"] == places["b"]
    assert run.jobs["finish"].max() == 101.0  # the three others have a GPU each
