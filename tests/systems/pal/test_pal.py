"""Regime pal: PAL's simulator job by job, by hand on two small nodes and against recorded choices, rounds and runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.simulator.references import one_in, reference

from gantline.core.cluster import Cluster
from gantline.core.errors import GantlineError
from gantline.policies.placement.picking import DeviceBins
from gantline.simulator.simulate import simulate
from gantline.systems.pal.imitation import PalEntry, Placing
from gantline.traces.files.clusters import read_cluster
from gantline.traces.files.device_tables import read_device_speeds
from gantline.traces.importers import import_trace

RULES = {"Packed-S": "packed-sticky", "Packed-NS": "packed", "PMFirst": "pm-first", "PAL": "pal", "Random-S": "random"}


@pytest.fixture
def speeds(tmp_path: Path) -> str:
    """Two nodes of two GPUs; the first GPU is half as fast for class A, and like the others for class B."""
    path = tmp_path / "speeds.csv"
    path.write_text("gpu,node,varA,varB,sfA\n0,0,2.0,1.0,2.0\n1,0,1.0,1.0,1.0\n2,1,1.0,1.0,1.0\n3,1,1.25,1.0,1.25\n")
    return str(path)


def jobs(*rows: tuple[int, str]) -> pl.DataFrame:
    """Jobs of 1,000 s that arrive one after the other: (gpus, class)."""
    columns = [
        {"job": str(k), "arrival": float(k), "gpus": gpus, "duration": 1000.0, "speed_class": kind} for k, (gpus, kind) in enumerate(rows)
    ]
    return pl.DataFrame(columns)


def ends(trace: pl.DataFrame, speeds: str, rule: str, policy: str = "fifo", **options: Any) -> list[tuple[float, float]]:
    run = simulate(trace, "2x2", policy, regime="pal", placement=rule, device_speeds=speeds, **{"round": 100, "locality": 2.0, **options})
    return run.jobs.select("first_start", "finish").rows()


def test_packed_takes_the_first_node_and_the_slow_gpu_with_it(speeds: str) -> None:
    # arrival 0 starts at the round of 0 and needs 20 rounds on the slow GPU; PAL takes the fastest one
    assert ends(jobs((1, "A")), speeds, "packed-sticky") == [(0.0, 2000.0)]
    assert ends(jobs((1, "A")), speeds, "pal") == [(0.0, 1000.0)]


def test_a_pair_stays_on_one_node_where_that_is_cheaper_than_the_fastest_gpus(speeds: str) -> None:
    # GPUs 1 and 2 are fastest but on two nodes: 2,000 s; GPUs 2 and 3 on one node: 1,250 s, seen at the end of the round
    assert ends(jobs((2, "A")), speeds, "pm-first") == [(0.0, 2000.0)]
    assert ends(jobs((2, "A")), speeds, "pal") == [(0.0, 1300.0)]
    assert ends(jobs((2, "A")), speeds, "pm-first", locality=1.0) == [(0.0, 1000.0)]


def test_the_sensitive_class_chooses_first_although_it_came_later(speeds: str) -> None:
    (_, insensitive), (start, sensitive) = ends(jobs((1, "B"), (1, "A")), speeds, "pm-first")

    assert (start, sensitive, insensitive) == (100.0, 1100.0, 1000.0)


def test_jobs_that_the_original_adds_behind_the_trace_compete_and_are_counted(speeds: str) -> None:
    run = simulate(
        jobs((4, "A"), (1, "A")), "2x2", "fifo", regime="pal", placement="packed", device_speeds=speeds, round=100, locality=30.0
    )

    assert run.summary["fillers"] > 0
    assert run.jobs["job"].to_list() == ["0", "1"]


def test_a_job_that_has_waited_a_thousand_hours_goes_before_all_others(speeds: str) -> None:
    """Both want the whole cluster; the longer one comes second, and gets its turn after four rounds of 250 hours."""
    hour = 3600.0
    trace = jobs((4, "B"), (4, "B")).with_columns(arrival=pl.lit(0.0), duration=pl.Series([2500 * hour, 2750 * hour]))

    first, second = ends(trace, speeds, "packed", "srtf", round=250 * hour, locality=1.0)

    assert (first[0], second[0]) == (0.0, 1000 * hour)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"placement": "consolidated"}, "no placement 'consolidated'"),
        ({"device_speeds": ""}, "speeds of devices"),
        ({"cluster": "a:1x2,b:1x2"}, "one type"),
    ],
)
def test_what_the_original_has_nothing_like_is_refused(speeds: str, change: dict[str, Any], what: str) -> None:
    options = {"cluster": "2x2", "policy": "fifo", "placement": "pal", "device_speeds": speeds, "regime": "pal"} | change

    with pytest.raises(GantlineError, match=what):
        simulate(jobs((1, "A")), options.pop("cluster"), options.pop("policy"), **options)


def test_a_class_that_the_table_does_not_have_is_refused(speeds: str) -> None:
    with pytest.raises(GantlineError, match="class 'E'"):
        ends(jobs((1, "E")), speeds, "pal")


# --- recorded ----------------------------------------------------------------------------------------------------------


def bins_of(cluster: Cluster) -> dict[str, DeviceBins]:
    table = read_device_speeds(str(reference("pal/cluster_64.csv")), cluster)
    return {kind: DeviceBins(list(cluster.device_node), table.bins[kind].tolist()) for kind in table.classes}


def test_recorded_choices_are_equal() -> None:
    device_bins = bins_of(read_cluster("16x4"))
    rows = pl.read_csv(reference("pal/decisions.csv")).rows(named=True)

    for row in rows:
        rule = {"pmfirst": "pm-first"}.get(row["policy"], row["policy"])
        free = [int(device) for device in row["free"].split()]
        chosen = Placing.named(rule, device_bins, row["lf"]).choose(free, row["gpus"], device_bins[row["class"]])
        assert chosen == [int(device) for device in row["chosen"].split()], row["id"]

    assert len(rows) == 15


def test_recorded_rounds_are_equal() -> None:
    device_bins = bins_of(read_cluster("16x4"))
    names = {"pal": "pal", "pmfirst": "pm-first", "packed_sticky": "packed-sticky", "packed_nonsticky": "packed"}

    for told in json.loads(reference("pal/rounds.json").read_text()):
        order = [PalEntry(job["job"], job["gpus"], job["cls"]) for job in told["order"]]
        held = {job["job"]: job["holds"] for job in told["order"] if job["holds"]}
        found = Placing.named(names[told["policy"]], device_bins, told["lf"]).place(order, held)
        assert found.suspend == told["suspend"]
        assert [list(each) for each in found.launch] == told["launch"]


@pytest.mark.parametrize(("apart", "count"), one_in(2, [(8, 3), (1, 17)]))
def test_recorded_runs_are_equal_job_by_job(apart: int, count: int) -> None:
    recorded = pl.read_csv(reference("pal/per_job_sia_fifo.csv.gz"))
    speeds = str(reference("pal/cluster_64.csv"))
    compared = 0
    runs = list(recorded.group_by("trace", "policy", maintain_order=True))

    for (trace, rule), rows in runs[::apart]:
        run = simulate(
            import_trace("pal", reference("pal/sia_traces.csv.gz"), {"trace": trace}), "16x4", "fifo", regime="pal", round=360,
            placement=RULES[str(rule)], device_speeds=speeds, locality=1.7,
        )  # fmt: skip
        ours = run.jobs.select(pl.col("job").cast(pl.Int64), "first_start", "finish").sort("job").rows()
        assert ours == rows.select("job", pl.col("first_start_s", "end_s").cast(pl.Float64)).sort("job").rows(), (trace, rule)
        compared += len(rows)

    assert compared == count * 160


def test_a_file_that_says_how_long_iterations_take_is_believed_before_the_built_in_times(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "trace,job,gpus,submit_s,iterations,model,iteration_time\n0,a,1,0,100,GPT2,2.0\n0,b,1,0,100,mine,0.5\n0,c,1,0,100,GPT2,\n"
    )
    trace = import_trace("pal", path).frame
    assert trace["iteration_time"].to_list() == [2.0, 0.5, 3.5714]
    assert trace["duration"].to_list() == [200.0, 50.0, pytest.approx(357.14)]
