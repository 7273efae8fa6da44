"""Tables that a setting names: node events, measured throughputs, prices. They count by content and move with the file that names them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gantline.core.errors import NotFoundError, RefusedError, TraceError, UsageError
from gantline.lab.experiment.experiment import Experiment, read_experiment, write_experiment
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.setting import Setting, run_setting
from gantline.lab.experiment.sweep import run_sweep
from gantline.lab.experiment.trace_source import TraceSource

SPEEDS = {kind: {"('lm', 1)": {"null": speed}} for kind, speed in (("fast", 4.0), ("slow", 1.0))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "\n".join(f"{name},0,1,100,\"('lm', 1)\",400" for name in "ab")
    (tmp_path / "jobs.csv").write_text(f"job,arrival,gpus,duration,throughput_key,work\n{rows}\n")
    (tmp_path / "speeds.json").write_text(json.dumps(SPEEDS))
    (tmp_path / "nodes.csv").write_text("time,node,event\n50,node1,down\n")
    (tmp_path / "prices.csv").write_text("fast,3.6\nslow,1.8\n")
    return tmp_path


def setting(folder: Path, **changes: object) -> Setting:
    base = {"trace": TraceSource(file=str(folder / "jobs.csv")), "cluster": "fast:1x1,slow:1x1", "policy": "fifo"}
    return Setting(**(base | changes))  # type: ignore[arg-type]


def test_measured_speeds_decide_how_long_jobs_run(folder: Path) -> None:
    run = run_setting(setting(folder, throughputs=str(folder / "speeds.json")))
    assert sorted(run.jobs["jct"].to_list()) == [100.0, 400.0]


def test_a_node_that_fails_during_the_run(folder: Path) -> None:
    run = run_setting(setting(folder, node_events=str(folder / "nodes.csv")))
    assert "node-lost" in run.allocations["reason"]
    assert run.summary["down_gpus"] == [(50.0, 1)]


def test_prices_become_the_cost_in_the_results(folder: Path) -> None:
    for given in ("fast=3.6,slow=1.8", str(folder / "prices.csv")):
        one = setting(folder, prices=given)
        cases = Grid(one, (PolicyChoice("fifo"),)).cases()
        results = run_sweep(cases, folder / f"sweep-{len(given)}").results
        assert results["money"].to_list() == [pytest.approx(100 / 3600 * (3.6 + 1.8))]


@pytest.mark.parametrize("field", ["throughputs", "node_events", "prices"])
def test_the_content_counts_and_a_change_is_noticed(folder: Path, field: str) -> None:
    file = folder / {"throughputs": "speeds.json", "node_events": "nodes.csv", "prices": "prices.csv"}[field]
    copy = folder / f"copy{file.suffix}"
    copy.write_text(file.read_text())
    one, two = (setting(folder, **{field: str(path)}) for path in (file, copy))
    assert one.hash == two.hash != setting(folder).hash
    pinned = two.pinned()
    copy.write_text(file.read_text() + "\n")
    assert one.hash != setting(folder, **{field: str(copy)}).hash
    with pytest.raises(RefusedError, match=f"the file of the {field} has changed"):
        run_setting(pinned)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"throughputs": "nowhere.json"}, NotFoundError, "no such file"),
        ({"node_events": "nowhere.csv"}, NotFoundError, "no such file"),
        ({"prices": "v100"}, NotFoundError, "no such file"),
        ({"prices": "v100=cheap"}, UsageError, "'cheap' is not a number"),
        ({"cluster": "4x1"}, TraceError, "no node 'node9'"),
    ],
)
def test_a_wrong_table_is_refused_before_anything_runs(folder: Path, change: dict[str, str], error: type, message: str) -> None:
    (folder / "odd.csv").write_text("time,node,event\n50,node9,down\n")
    given = {"node_events": str(folder / "odd.csv")} if "cluster" in change else {}
    with pytest.raises(error, match=message):
        setting(folder, **given, **change).check()


def test_an_experiment_file_finds_its_tables_from_its_own_folder(folder: Path) -> None:
    base = setting(folder, throughputs=str(folder / "speeds.json"), node_events=str(folder / "nodes.csv"), across_nodes=True)
    (folder / "deep").mkdir()
    path = write_experiment(Experiment(Grid(base, (PolicyChoice("fifo"),))), folder / "deep" / "experiment.yaml")
    assert "throughputs: ../speeds.json" in path.read_text()
    again = read_experiment(path).grid
    assert [case.hash for case in again.cases()] == [case.hash for case in Grid(base, (PolicyChoice("fifo"),)).cases()]


def test_options_of_a_foreign_format_that_are_files_move_too(folder: Path) -> None:
    (folder / "old.trace").write_text("lm\tcmd\t.\t-s\t0\t400\t1\t1\t-1\t0\n")
    source = TraceSource(
        file=str(folder / "old.trace"), format="gavel", settings={"throughputs": str(folder / "speeds.json"), "device": "fast"}
    )
    base = setting(folder, trace=source)
    (folder / "deep").mkdir()
    path = write_experiment(Experiment(Grid(base, (PolicyChoice("fifo"),))), folder / "deep" / "experiment.yaml")
    read = read_experiment(path).grid.base
    assert Path(read.trace.settings["throughputs"]).samefile(folder / "speeds.json")
    assert run_setting(read).jobs["jct"].to_list() == [100.0]


def test_a_mistake_in_a_table_points_at_the_line_of_the_experiment(folder: Path) -> None:
    path = folder / "experiment.yaml"
    path.write_text("version: 1\ntrace: jobs.csv\ncluster: fast:1x1,slow:1x1\npolicies: [fifo]\nthroughputs: sped.json\n")
    with pytest.raises(NotFoundError, match=r"experiment\.yaml:5.*no such file"):
        read_experiment(path)
    path.write_text("version: 1\ntrace: jobs.csv\ncluster: 2x1\npolicies: [fifo]\nacross_nodes: maybe\n")
    with pytest.raises(UsageError, match=r"experiment\.yaml:5.*neither true nor false"):
        read_experiment(path)
