"""Code comes from the command line alone: what a file names, which somebody else may have made, is never loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import ended, running, submit

from gantline.cli.main import main
from gantline.live.store import SqlStore

JOBS = "job,arrival,gpus,duration\na,0,2,50\nb,5,1,20\nc,10,2,30\n"
PROGRAM = """
from pathlib import Path
Path({mark!r}).write_text("it ran")

from gantline import DeviceRule, Plan, Policy


class Evil(Policy):
    def decide(self, snapshot):
        return Plan.rank(snapshot.jobs.arrival)


class Rule(DeviceRule):
    def order(self, *anything):
        return []


class Model:
    def rates(self, running):
        return None
"""
Line = dict[str, Any]


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What exists once the program has been loaded; the program lies in the folder, and at an absolute path."""
    monkeypatch.chdir(tmp_path)
    mark = tmp_path / "mark"
    (tmp_path / "evil.py").write_text(PROGRAM.format(mark=str(mark)))
    (tmp_path / "evil.yaml").write_text("policy: ./evil.py:Evil\nsettings: {}\n")
    (tmp_path / "jobs.csv").write_text(JOBS)
    return mark


def failed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What the command says when it fails."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) != 0
    return capsys.readouterr().err


def changed(change: Callable[[list[Line]], None]) -> None:
    """The record with something else in it."""
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    change(lines)
    lines[0]["lines"] = len(lines) - 1
    Path("run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("how", ["evil.py:Evil", "evil.py", "./evil.py:Evil", "absolute", "evil.yaml", "evil:Evil", "os:system"])
def test_a_record_does_not_say_which_policy_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    assert main(["simulate", "jobs.csv", "--cluster", "1x4", "--policy", "fifo", "--record", "run.jsonl"]) == 0
    name = f"{mark.with_name('evil.py')}:Evil" if how == "absolute" else how
    changed(lambda lines: lines[0].update(policy=name))
    told = failed(capsys, "replay", "run.jsonl")
    assert "--policy ./evil" in told or "no policy" in told
    assert not mark.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines[0]["options"].update(placement="evil.py:Rule"),
        lambda lines: lines[0]["options"].update(performance="evil.py:Model"),
        lambda lines: lines[0].update(policy="synthesizer", settings={"portfolio": {"__tuple__": ["fifo", "evil.py:Evil"]}}),
        lambda lines: lines.insert(1, {"input": "use", "time": 0.0, "policy": "evil.py:Evil", "settings": {}, "heard": 0.0, "after": 0}),
    ],
    ids=["placement", "performance", "settings", "switch"],
)
def test_nor_anything_else_in_it(mark: Path, capsys: pytest.CaptureFixture[str], change: Callable[[list[Line]], None]) -> None:
    assert main(["simulate", "jobs.csv", "--cluster", "1x4", "--policy", "fifo", "--record", "run.jsonl"]) == 0
    changed(change)
    failed(capsys, "replay", "run.jsonl")
    assert not mark.exists()


@pytest.mark.parametrize("option", ["checkpoint", "resume", "executor", "record", "inputs", "spec", "on_progress"])
def test_a_record_names_no_file_to_write(mark: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    run = ["simulate", "jobs.csv", "--cluster", "1x4", "--policy", "fifo", "--regime", "blox", "--round", "10"]
    assert main([*run, "--record", "run.jsonl"]) == 0
    changed(lambda lines: lines[0]["options"].update({option: "written", "checkpoint_every": 10}))
    failed(capsys, "replay", "run.jsonl")
    assert not Path("written").exists()


def test_what_the_command_line_names_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "jobs.csv", "--cluster", "1x4", "--policy", "./evil.yaml", "--record", "run.jsonl"]) == 0
    mark.unlink()
    assert main(["replay", "run.jsonl", "--policy", "./evil.py:Evil"]) == 0
    assert mark.exists()
    told = failed(capsys, "replay", "run.jsonl", "--policy", "./evil.py:Evil", "--placement", "./evil.py:Rule")
    assert "the record names no './evil.py:Rule'" in told


def test_a_store_does_not_say_which_policy_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home := mark.with_name("home")).mkdir()
    store = SqlStore.open(home / "gantline.sqlite")
    with running(home, "cpu:1", str(mark.with_name("evil.py")), store=store) as scheduler:
        ended(scheduler, submit(scheduler, "true"))
        scheduler.use("fifo")
        ended(scheduler, submit(scheduler, "true"))
    store.close()
    mark.unlink()
    assert "--policy ./evil.py" in failed(capsys, "replay", home)
    assert not mark.exists()
    assert main(["replay", str(home), "--policy", "./evil.py"]) == 0
    assert mark.exists()
    assert "--policy ./evil.py" in failed(capsys, "replay", home, "--policy", "srtf")


@pytest.mark.parametrize("field", ["present", "placement"])
@pytest.mark.parametrize("command", ["explain a", "forecast", "what-if --add 1x4", "decide"])
def test_a_snapshot_does_not_say_what_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str], command: str, field: str) -> None:
    jobs = [{"id": "a", "gpus": 1, "estimate": 10}]
    snapshot = {"cluster": "1x4", "jobs": jobs, **({"placement": "evil.py:Rule"} if field == "placement" else {})}
    present = {"policy": "evil.py:Evil" if field == "present" else "fifo"}
    Path("now.json").write_text(json.dumps({"kind": "watched", "version": 1, "present": present, "snapshot": snapshot}))
    if command == "decide":
        main(["decide", "now.json", "--policy", "fifo"])
    else:
        failed(capsys, *command.split(), "--snapshot", "now.json")
    assert not mark.exists()


def test_an_experiment_file_names_no_code_that_the_command_line_does_not(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.yaml").write_text("version: 1\ntrace: jobs.csv\ncluster: 1x4\npolicies: [fifo, 'evil.py:Evil']\n")
    assert "--policy ./evil.py:Evil" in failed(capsys, "experiment", "check", "experiment.yaml")
    assert not mark.exists()
    (other := mark.with_name("other")).mkdir()
    (other / "evil.py").write_text(Path("evil.py").read_text().replace("it ran", "the other ran"))
    failed(capsys, "experiment", "check", "experiment.yaml", "--policy", "other/evil.py:Evil")  # of that name, but another file
    assert not mark.exists()
    assert main(["experiment", "check", "experiment.yaml", "--policy", "./evil.py:Evil"]) == 0
    assert mark.read_text() == "it ran"


def test_stored_runs_and_sweeps_are_shown_without_their_code(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "jobs.csv", "--cluster", "1x4", "--policy", "fifo,evil.py:Evil", "--out", "kept", "--workers", "1"]) == 0
    assert main(["simulate", "jobs.csv", "--cluster", "1x4", "--policy", "evil.py:Evil", "--out", "run"]) == 0
    mark.unlink()
    assert main(["report", "kept", "-o", "kept.html"]) == 0
    assert main(["report", "run", "-o", "run.html"]) == 0
    assert main(["plot", "jct-cdf", "run", "-o", "run.svg"]) == 0
    assert not mark.exists()
