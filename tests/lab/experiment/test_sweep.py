"""Sweeps: whole results, the same for any number of workers, resumed where they stopped, never sunk by one run."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from gantline.core.errors import RefusedError, UsageError
from gantline.lab import whole_files
from gantline.lab.experiment import records
from gantline.lab.experiment.folder import ExperimentFolder, runs_in
from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.records import DONE, Outcome, read_record
from gantline.lab.experiment.results import best_places
from gantline.lab.experiment.running.processes import WorkerProcesses, choose_backend
from gantline.lab.experiment.running.shared_inputs import files_of, pack, perform_here, take_in
from gantline.lab.experiment.running.tasks import InThisProcess, Task, perform
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep, run_sweep
from gantline.lab.experiment.sweep_page import means_section, render_sweep
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.rundir import read_run

BASE = Setting(TraceSource(generator="day", settings={"jobs": 60, "gpus": 16}), "4x4", "fifo")
FIFO, SRTF = PolicyChoice("fifo"), PolicyChoice("srtf")


def grid(*policies: PolicyChoice, **more: object) -> list[Case]:
    return Grid(BASE, policies or (FIFO, SRTF), **more).cases()  # type: ignore[arg-type]


class Counting(InThisProcess):
    """Runs here, and remembers what."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def run(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            self.ran.append(task.hash)
            yield perform(task)


def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    cases = grid(loads=(0.6, 0.9), seeds=(1,))
    one = run_sweep(cases, tmp_path / "one", backend=choose_backend(1)).results
    two = run_sweep(cases, tmp_path / "two", backend=choose_backend(2)).results
    assert one["log_hash"].n_unique() == 4
    assert one.drop("wall_seconds").equals(two.drop("wall_seconds"))


def test_a_finished_run_is_not_run_again(tmp_path: Path) -> None:
    run_sweep(grid(FIFO), tmp_path / "s")
    backend = Counting()
    sweep = run_sweep(grid(), tmp_path / "s", backend=backend)
    assert backend.ran == [sweep.cases[1].hash]
    assert sweep.reused == 1
    assert sweep.results["state"].to_list() == ["done", "done"]


def test_a_result_of_another_program_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "program_digest", lambda: "another")
    run_sweep(grid(FIFO), tmp_path / "s")
    monkeypatch.undo()
    backend = Counting()
    run_sweep(grid(FIFO), tmp_path / "s", backend=backend)
    assert len(backend.ran) == 1


def test_one_failing_run_does_not_sink_the_rest(tmp_path: Path) -> None:
    sweep = run_sweep(grid(FIFO, SRTF, vary={"estimates": ["none"]}), tmp_path / "s")
    assert sweep.results["state"].to_list() == ["done", "failed"]
    ((case, message),) = sweep.failures
    assert case.policy == "srtf"
    assert "needs remaining" in message


def test_a_failure_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a slip in the policy")

    monkeypatch.setattr("gantline.lab.experiment.running.tasks.store_result", break_down)
    assert run_sweep(grid(FIFO), tmp_path / "s").failures[0][1] == "ZeroDivisionError: a slip in the policy"
    monkeypatch.undo()
    assert run_sweep(grid(FIFO), tmp_path / "s").failures == []


def test_a_worker_that_dies_takes_only_its_own_run_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fatal = Task(BASE, "f" * 64, str(tmp_path / "runs"))
    good = [Task(case.setting, case.hash, str(tmp_path / "runs")) for case in grid()]
    to_dict = Task.to_dict
    monkeypatch.setattr(Task, "to_dict", lambda self: {} if self is fatal else to_dict(self))  # the worker cannot read it, and dies
    outcomes = {outcome.hash: outcome for outcome in WorkerProcesses(2).run([good[0], fatal, good[1]])}
    assert [outcomes[task.hash].state for task in good] == ["done", "done"]
    assert outcomes[fatal.hash].state == "failed"
    assert "ended the process that ran it, with exit code 1" in outcomes[fatal.hash].message


@pytest.mark.parametrize("workers", [1, 2])
def test_a_policy_that_ends_its_worker_is_told_as_in_one_run(workers: int, tmp_path: Path) -> None:
    head = "import ctypes, os\nfrom gantline import Policy\nclass Mine(Policy):\n    def decide(self, snapshot):\n        "
    told = {
        "ctypes.string_at(0)": f"the process that ran the policy crashed: Segmentation fault ({tmp_path / 'p0.py'}:5, in decide)",
        "os._exit(3)": "the policy ended the process that ran it, with exit code 3 (os._exit or the like)",
    }
    tasks = []
    for number, fault in enumerate(told):
        (tmp_path / f"p{number}.py").write_text(head + fault)
        tasks.append(Task(BASE.with_value("policy", str(tmp_path / f"p{number}.py")), str(number) * 64, str(tmp_path / "runs")))
    outcomes = sorted(WorkerProcesses(workers, limit=300).run(tasks), key=lambda outcome: outcome.hash)
    assert [outcome.message for outcome in outcomes] == list(told.values())


def test_a_run_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    head = "import time\nfrom dataclasses import dataclass\nfrom gantline import OrderPolicy\n\n"
    body = "@dataclass(frozen=True)\nclass Slow(OrderPolicy):\n    def key(self, snapshot):\n        time.sleep(60)\n"
    slow.write_text(head + body, encoding="utf-8")
    task = Task(BASE.with_value("policy", f"{slow}:Slow"), "e" * 64, str(tmp_path / "runs"))
    (outcome,) = choose_backend(1, limit=1).run([task])
    assert (outcome.state, outcome.message) == ("failed", "took longer than 1 s")


def test_stopping_early_keeps_what_was_finished(tmp_path: Path) -> None:
    cases = grid(seeds=(1, 2))

    def interrupt(done: int, *_: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_sweep(cases, tmp_path / "s", on_outcome=interrupt)
    assert not list((tmp_path / "s" / "runs").glob(".*"))
    backend = Counting()
    sweep = run_sweep(cases, tmp_path / "s", backend=backend)
    assert len(backend.ran) == 2
    assert sweep.results["state"].to_list() == ["done"] * 4


def test_stopping_ends_the_workers(tmp_path: Path) -> None:
    tasks = [Task(case.setting, case.hash, str(tmp_path)) for case in grid(seeds=(1, 2, 3))]
    before = set(_children())  # other tests of this process may keep some for the next
    stream = WorkerProcesses(2).run(tasks)
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert not set(_children()) - before


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = grid(seeds=(1, 2))
    fsync, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) > 5:  # manifest, two files for each of two runs, and then no room
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    monkeypatch.setattr(whole_files.os, "fsync", full)
    with pytest.raises(RefusedError, match="the disk is full; the 2 finished runs are kept"):
        run_sweep(cases, tmp_path / "s")
    monkeypatch.undo()
    assert not list((tmp_path / "s").rglob("*.part"))
    backend = Counting()
    run_sweep(cases, tmp_path / "s", backend=backend)
    assert len(backend.ran) == 2


def test_a_half_written_record_counts_as_none(tmp_path: Path) -> None:
    (case,) = grid(FIFO)
    run_sweep([case], tmp_path / "s")
    (record,) = (tmp_path / "s" / "runs").glob("*.json")
    record.write_text(record.read_text(encoding="utf-8")[:100], encoding="utf-8")
    backend = Counting()
    run_sweep([case], tmp_path / "s", backend=backend)
    assert len(backend.ran) == 1


def test_two_sweeps_cannot_share_a_folder(tmp_path: Path) -> None:
    with ExperimentFolder.open(tmp_path / "s"), pytest.raises(RefusedError, match="another sweep is writing here"):
        run_sweep(grid(FIFO), tmp_path / "s")


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("important", encoding="utf-8")
    with pytest.raises(RefusedError, match="is not the folder of a sweep"):
        run_sweep(grid(FIFO), tmp_path)
    assert [item.name for item in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    run_sweep(grid(FIFO), tmp_path / "s")
    manifest = tmp_path / "s" / "sweep.json"
    manifest.write_text(json.dumps({"schema_version": 99, "version": "9.1"}), encoding="utf-8")
    with pytest.raises(RefusedError, match=r"newer Gantline \(9\.1\)"):
        run_sweep(grid(FIFO), tmp_path / "s")


def test_whole_runs_can_be_kept(tmp_path: Path) -> None:
    sweep = run_sweep(grid(FIFO), tmp_path / "s", keep_runs=True)
    stored = read_run(records.kept_run(tmp_path / "s" / "runs", sweep.cases[0].hash))
    assert stored.summary["name"] == "fifo seed=0"
    assert stored.jobs.height == 60
    assert stored.jobs.drop("tracked", strict=False).equals(sweep.jobs(sweep.cases[0]).drop("tracked"))


def test_workers_are_counted() -> None:
    with pytest.raises(UsageError, match="0 workers cannot run anything"):
        choose_backend(0)


def _children() -> list[str]:
    """Processes that this one started and that still live."""
    me = str(os.getpid())
    found = []
    for entry in Path("/proc").iterdir():
        try:
            parts = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split() if entry.name.isdigit() else []
        except OSError:
            continue
        if parts and parts[1] == me and parts[0] != "Z":
            found.append(entry.name)
    return found


def test_runs_that_are_kept_have_names_and_can_be_reported(tmp_path: Path) -> None:
    base = Setting(TraceSource(generator="day", settings={"jobs": 30, "gpus": 16}), "4x4", "fifo")
    cases = Grid(base, (PolicyChoice("fifo"), PolicyChoice("las", {"service": "gpu-time"}))).cases()
    run_sweep(cases, tmp_path / "s", keep_runs=True)
    named = tmp_path / "s" / "by-name"
    assert sorted(link.name for link in named.iterdir()) == ["fifo-seed=0", "las-service=gpu-time-seed=0"]
    assert [read_run(run).summary["name"] for run in runs_in(tmp_path / "s")] == ["fifo seed=0", "las service=gpu-time seed=0"]
    assert runs_in(named / "fifo-seed=0") == [named / "fifo-seed=0"]
    run_sweep(cases, tmp_path / "t")
    with pytest.raises(RefusedError, match="--keep-runs"):
        runs_in(tmp_path / "t")


def test_an_axis_of_numbers_given_as_text_is_drawn_against(tmp_path: Path) -> None:
    base = Setting(TraceSource(generator="day", settings={"jobs": 20, "gpus": 16}), "4x4", "fifo")
    vary = {"trace.jobs": ["20", "30"], "cluster": ["4x4", "5x4"], "tiresias.limits": ["3600", "3600,7200"]}
    found = run_sweep(Grid(base, (PolicyChoice("fifo"), PolicyChoice("tiresias")), vary=vary).cases(), tmp_path / "s")
    assert found.results["trace.jobs"].unique().sort().to_list() == [20, 30]
    assert found.results["tiresias.limits"].drop_nulls().unique().sort().to_list() == ["3600", "3600,7200"]
    assert found.plot("load", by="trace.jobs", where={"cluster": "4x4"}).panels[0].layers


# The page of a sweep: a grid of policies and loads with intervals, and the answer before it.

POLICIES = (PolicyChoice("fifo"), PolicyChoice("srtf"))
LOADS = (0.4, 0.9)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    base = Setting(TraceSource(generator="day", settings={"jobs": 40, "gpus": 16}), "4x4", "fifo")
    return run_sweep(Grid(base, POLICIES, loads=LOADS, seeds=(0, 1, 2)).cases(), tmp_path_factory.mktemp("grid") / "s")


def rows_of(table: str) -> list[list[str]]:
    """The texts of the cells, row by row."""
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]


def test_without_another_axis_metrics_stand_side_by_side(swept: Sweep) -> None:
    at_one_load = swept.results.filter(pl.col("load") == 0.4)
    head, *rows = rows_of(means_section(at_one_load)[0])
    assert head[:2] == ["policy", "Mean JCT"]
    assert [row[0] for row in rows] == ["fifo", "srtf"]


def results(**columns: Sequence[object]) -> pl.DataFrame:
    """A row per run, done and in no doubt unless it says otherwise."""
    size = len(columns["policy"])
    hashes = [str(run) for run in range(size)]
    plain = {"seed": [0] * size, "hash": hashes, "state": ["done"] * size, "doubts": [""] * size, "log_hash": hashes}
    found = {"policy": columns["policy"], "load": columns["load"], **plain, **columns}
    order = ["policy", "load", "seed", "hash", "state", "doubts", "log_hash", "jct_mean"]
    return pl.DataFrame({name: found[name] for name in order})


def test_the_answer_says_which_policy_is_best_where() -> None:
    policies, loads = ["fifo", "las", "fifo", "las"], [0.5, 0.5, 1.0, 1.0]
    everywhere = results(policy=policies, load=loads, jct_mean=[2.0, 1.0, 4.0, 3.0])
    assert best_places(everywhere) == "las has the lowest mean JCT everywhere."
    mixed = results(policy=policies, load=loads, jct_mean=[1.0, 2.0, 4.0, 3.0])
    assert best_places(mixed) == "fifo has the lowest mean JCT at load 0.5; las has the lowest mean JCT at load 1."
    doubtful = results(policy=policies, load=loads, jct_mean=[2.0, 1.0, 4.0, 3.0], doubts=["", "", "", "no steady state"])
    assert best_places(doubtful) == "las has the lowest mean JCT at load 0.5; at load 1 runs failed or are in doubt."
    hopeless = results(policy=policies, load=loads, jct_mean=[2.0, 1.0, 4.0, 3.0], doubts=["no steady state"] * 4)
    assert best_places(hopeless).startswith("No two policies can be compared")


def test_the_answer_comes_before_its_doubts_and_the_grid(swept: Sweep, tmp_path: Path) -> None:
    base = Setting(TraceSource(generator="day", settings={"jobs": 40, "gpus": 16}), "4x4", "fifo")
    three = run_sweep(Grid(base, (*POLICIES, PolicyChoice("las")), loads=LOADS).cases(), tmp_path / "s")
    text = render_sweep(three)
    places = [text.index(part) for part in ('class="headline"', 'class="doubts', "4 comparisons with fifo", 'id="grid-jct_mean"')]
    assert places == sorted(places)
    assert text.count('class="headline"') == 1
    assert text.count('class="headline"') < render_sweep(swept).count('class="headline"')  # two verdicts are an answer by themselves


# A run is made where nothing of the sweep's folder is: its files are sent there, and its result is sent back.


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Setting:
    (tmp_path / "far").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "far"))
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,10\nb,1,2,5\nc,2,4,3\n")
    (tmp_path / "cluster.yaml").write_text("nodes:\n- {name: n, gpus: 4}\n")
    return Setting(TraceSource(file=str(tmp_path / "jobs.csv")), str(tmp_path / "cluster.yaml"), "srtf").pinned()


def test_a_setting_names_its_files(setting: Setting, tmp_path: Path) -> None:
    assert set(files_of(setting)) == {str(tmp_path / "jobs.csv"), str(tmp_path / "cluster.yaml")}


@pytest.mark.parametrize("keep_run", [False, True])
def test_a_result_from_afar_is_the_one_that_is_made_here(setting: Setting, tmp_path: Path, keep_run: bool) -> None:
    key = setting.hash
    for name in ("here", "sent"):
        (tmp_path / name).mkdir()
    perform(Task(setting, key, str(tmp_path / "here"), keep_run=keep_run))
    paths = files_of(setting)
    parcels = [pack(Path(path)) for path in paths]
    for path in paths:
        Path(path).rename(f"{path}.away")  # there is no such file on the other machine
    outcome, result = perform_here(Task(setting, key, "/nowhere", keep_run=keep_run), paths, parcels)
    assert outcome.state == DONE, outcome.message
    for _ in range(2):  # a task that was run again replaces its result
        take_in(result, tmp_path / "sent")
    assert sorted(one.name for one in (tmp_path / "sent").iterdir()) == sorted(one.name for one in (tmp_path / "here").iterdir())
    here, sent = (read_record(tmp_path / name, key) for name in ("here", "sent"))
    assert here.jobs().equals(sent.jobs())
    assert here.measures == sent.measures
    assert _without_times(here.summary) == _without_times(sent.summary)


def _without_times(summary: dict[str, object]) -> dict[str, object]:
    return json.loads(json.dumps({name: value for name, value in summary.items() if not name.endswith("_seconds")}))
