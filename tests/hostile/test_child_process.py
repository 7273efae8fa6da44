"""What nothing can interrupt runs in a process that can be ended: the parent says where the policy was, and lives on."""

from __future__ import annotations

import errno
import gzip
import io
import os
import select
import subprocess
import sys
import zipfile
from pathlib import Path

import polars as pl
import pytest
from tests.typed import typed

from gantline import simulate
from gantline._crash_report import crash_text
from gantline.cli.child_process import is_wanted
from gantline.cli.console import csv_text
from gantline.cli.main import main
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import GantlineError
from gantline.core.json_reader import loads
from gantline.lab.conformance import check_policy
from gantline.lab.conformance.watched import fence
from gantline.lab.report.rundir import write_run
from gantline.traces.files.clusters import parse_cluster_yaml
from gantline.traces.files.marked_yaml import load_marked
from gantline.traces.files.policies import load_policy
from gantline.traces.trace import Trace
from gantline.traces.unpack import unpack
from gantline.traces.write import write_frame

STUBBORN = """\
from dataclasses import dataclass
from gantline import Policy

@dataclass(frozen=True)
class Stubborn(Policy):
    def decide(self, snapshot):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
"""


def test_a_policy_that_catches_everything_is_ended_with_its_process(tmp_path: Path) -> None:
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\na,0,1,10\n")
    hurry = "import gantline._alarm as a; a.GRACE = 0.2; import sys; from gantline.cli.main import main; sys.exit(main())"
    # long enough to be inside of its `try` on a busy machine, too: before that it can be interrupted
    budget = ["--budget", "0.5"]
    command = [sys.executable, "-c", hurry, "simulate", "jobs.csv", "--cluster", "1x1", "--policy", "stubborn.py", *budget]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert told.returncode == 1
    assert "could not be interrupted" in told.stderr
    assert "stubborn.py:" in told.stderr


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("os._exit(0)", "the policy ended the process that ran it, with exit code 0"),
        ("os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("ctypes.string_at(0)", "crashed: Segmentation fault (mine.py, in decide)"),
    ],
)
def test_a_child_that_ends_in_the_middle_is_told(fault: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"import ctypes, os\ndef decide():\n    {fault}\ndecide()\n")
    lines = (
        "import runpy, sys; from gantline.cli.child_process import in_a_child\n"
        "sys.exit(in_a_child(lambda: runpy.run_path('mine.py') and 0))"
    )
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert told in done.stderr.replace("mine.py:3", "mine.py")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of the end of its parent")
def test_a_child_whose_parent_is_killed_ends() -> None:
    lines = "import os, time; from gantline.cli.child_process import in_a_child\n"
    lines += "in_a_child(lambda: print(os.getpid(), flush=True) or time.sleep(3000))"
    with subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE) as running:
        child = os.pidfd_open(int(running.stdout.readline()))
        running.kill()
    assert select.select([child], [], [], 300)[0]
    os.close(child)


def test_commands_that_name_a_policy_file_run_in_a_child() -> None:
    assert is_wanted(["simulate", "jobs.csv", "--policy", "./mine.py:Mine"])
    assert is_wanted(["compare", "jobs.csv", "--policy", "fifo,mine.py"])
    assert is_wanted(["experiment", "study.yaml"])
    assert not is_wanted(["simulate", "jobs.csv", "--policy", "srtf"])


def test_the_last_words_name_the_first_frame_outside_of_the_package() -> None:
    dump = 'Timeout!\nThread 1:\n  File "/x/site-packages/numpy/a.py", line 3 in f\n  File "mine.py", line 12 in decide\n'
    assert crash_text(dump).endswith("(mine.py:12, in decide)")
    assert crash_text("") == ""


def test_the_check_of_a_policy_that_never_answers_ends(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "from dataclasses import dataclass\nfrom gantline import Policy\n\n"
        "@dataclass(frozen=True)\nclass Slow(Policy):\n    def decide(self, snapshot):\n        while True:\n            pass\n"
    )
    received: list[str] = []
    report = check_policy(load_policy(str(tmp_path / "slow.py")), budget=0.02, on_scenario=lambda at, total, name: received.append(name))
    assert received == ["no jobs"]
    assert not report.passed
    assert "its budget of 0.02 s" in {finding.rule: finding.message for finding in report.findings}["in time"]
    assert {finding.rule: finding.result for finding in report.findings}["feasible"] == "unseen"


@pytest.mark.parametrize("word", ["by_key(self)", "needs(self)"])
def test_the_check_of_a_policy_that_never_says_what_it_is_ends(word: str, tmp_path: Path) -> None:
    mark = "    @property\n" if "needs" in word else ""
    key = "    def key(self, snapshot):\n        return snapshot.jobs.arrival\n"
    lines = f"from gantline import OrderPolicy\nclass Mute(OrderPolicy):\n{key}{mark}    def {word}:\n        while True: pass\n"
    (tmp_path / "mute.py").write_text(lines)
    report = check_policy(load_policy(str(tmp_path / "mute.py")), budget=0.5)  # enough for a key on a busy machine
    found = {finding.rule: finding for finding in report.findings}
    assert "policy 'Mute': the policy was interrupted after 0.5 s" in found["in time"].message
    assert {finding.result for rule, finding in found.items() if rule not in ("in time", "answers")} == {"unseen"}


@pytest.mark.parametrize("fault", ["raise SystemExit", "raise GeneratorExit", "return Plan.rank(None)"])
def test_the_check_of_a_policy_that_goes_wrong_is_whole(fault: str, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        f"from gantline import Plan, Policy\nclass Bad(Policy):\n    def decide(self, snapshot):\n        {fault}\n"
    )
    report = check_policy(load_policy(str(tmp_path / "bad.py")))
    found = {finding.rule: finding for finding in report.findings}
    assert "bad.py:" in found["answers"].message
    assert found["refusals"].result == "unseen" if "Plan" in fault else "bad.py:4" in found["refusals"].message
    assert found["deterministic"].result == "unseen"


def test_reading_the_environment_crosses_the_fence() -> None:
    for read in (lambda: os.environ["PATH"], lambda: os.environ.get("PATH"), lambda: os.getenv("PATH"), lambda: "PATH" in os.environ):
        with fence() as crossed:
            read()
        assert crossed
        assert "reads the environment in <lambda>()" in crossed[0]


# Inputs of absurd size or depth: one clear message at once, and nothing left behind.

JOBS = [{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 10.0}]


@pytest.mark.parametrize("text", ["999999999x999999", "1x999999999", "v100:4x8,k80:99999999x1"])
def test_clusters_of_a_slip_of_the_finger_are_refused(text: str) -> None:
    with pytest.raises(GantlineError, match="too many"):
        parse_cluster(text)
    with pytest.raises(GantlineError, match="too many"):
        parse_cluster_yaml("nodes:\n  - {count: 999999999, gpus: 8}\n")


@pytest.mark.parametrize("read", [parse_cluster_yaml, lambda text: load_marked(text, "experiment.yaml")])
def test_deep_yaml_is_told(read) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GantlineError, match="nested too deeply"):
        read("nodes: " + "[" * 600 + "]" * 600)


def test_deep_json_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        loads("[" * 100_000 + "]" * 100_000)
    (tmp_path / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    assert typed(f"decide {tmp_path}/deep.json --policy fifo") == 2
    assert "nested too deeply" in capsys.readouterr().err


@pytest.mark.parametrize(("column", "value"), [("duration", 1e300), ("arrival", 1e300), ("duration", 2e10)])
def test_times_beyond_all_sense_are_refused(column: str, value: float) -> None:
    with pytest.raises(GantlineError, match="300 years"):
        Trace.from_records([JOBS[0] | {column: value}])


@pytest.mark.parametrize("option", [{"round": 1e300}, {"round": 1e-300}, {"min_run": 1e300}, {"seed": 1.5}, {"seed": "1.5"}])
def test_options_beyond_all_sense_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(GantlineError):
        simulate(JOBS, "1x1", "fifo", **option)


def test_an_archive_that_grows_without_measure_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gantline.traces.unpack._ANYWAY", 2**20)  # else it would have to be large
    zeros = b"0" * 2**23
    packed = tmp_path / "bomb.csv.gz"
    packed.write_bytes(gzip.compress(zeros, 9))
    with pytest.raises(GantlineError, match="unpacks to more than"):
        unpack(packed)
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("jobs.csv", zeros)
    (tmp_path / "bomb.zip").write_bytes(held.getvalue())
    with pytest.raises(GantlineError, match="unpacks to more than"):
        unpack(tmp_path / "bomb.zip")


def test_a_parquet_file_that_grows_without_measure_and_a_device_are_stopped(tmp_path: Path) -> None:
    pl.DataFrame({name: pl.repeat(1.0, 3_000_000, eager=True) for name in ("job", "arrival", "gpus", "duration")}).write_parquet(
        tmp_path / "bomb.parquet"
    )
    with pytest.raises(GantlineError, match="holds 3,000,000 rows in 0"):
        Trace.load(tmp_path / "bomb.parquet")
    with pytest.raises(GantlineError, match="is a device"):
        Trace.load("/dev/zero")


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "in.csv", "--cluster", "1x1", "--policy", "fifo", "--jobs-out", "./in.csv"],
        ["trace", "check", "in.csv", "--repair", "in.csv"],
        ["trace", "scale", "in.csv", "in.csv", "--load", "2"],
    ],
)
def test_what_is_read_is_not_written_over(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("job,arrival,gpus,duration\na,0,1,10\n")
    assert main(command) == 4
    assert "is what is read (choose another name: it would be lost)" in capsys.readouterr().err
    assert (tmp_path / "in.csv").read_text() == "job,arrival,gpus,duration\na,0,1,10\n"


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    assert typed(f"trace generate day {tmp_path}/x.csv") == 2
    assert f"{tmp_path / 'x.csv'}: no space left on device" in capsys.readouterr().err


def test_a_generator_asked_for_too_much_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(f"trace generate philly {tmp_path}/x.csv --set jobs=99999999999999") == 2
    assert "jobs are too many" in capsys.readouterr().err


def test_exports_carry_no_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-2+3", "-5", "plain", "1e5"]
    frame = pl.DataFrame({"job": names, "number": [-1.0] * len(names)})
    write_frame(frame, tmp_path / "out.csv")
    read = pl.read_csv(tmp_path / "out.csv", schema_overrides={"job": pl.String})
    assert read["job"].to_list() == [f"'{name}" for name in names[:4]] + names[4:]
    assert read["number"].to_list() == [-1.0] * len(names)
    assert csv_text(["job"], [["=1+1"], [-3]]) == "job\n'=1+1\n-3\n"
    Trace.from_records([JOBS[0] | {"job": "=1+1"}]).save(tmp_path / "in.jsonl")
    assert typed(f"trace shift {tmp_path}/in.jsonl --by 0") == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("'=1+1,")


def test_drafts_of_killed_writers_are_swept_up(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    orphan, own = tmp_path / f".run.{ended.pid}.abc", tmp_path / f".run.{os.getpid()}.abc"
    orphan.mkdir()
    own.mkdir()
    write_run(simulate(JOBS, "1x1", "fifo"), tmp_path / "run")
    assert not orphan.exists()
    assert own.exists()
