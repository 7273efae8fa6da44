"""The program as a whole: help is light, mistakes are one line, codes are those of the design."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cyclopts.completion import fish, zsh
from tests.cli.conftest import Cli

import gantline
from gantline.cli import failures
from gantline.cli.arguments import settings_of, time_of, window_of
from gantline.cli.console import Column, Sheet, show_text, table
from gantline.cli.main import COMMANDS, GROUPS, app, spread_settings
from gantline.core.errors import UsageError

SLOW = """
import sys, time
from dataclasses import dataclass
from gantline import Plan, Policy

@dataclass(frozen=True)
class Slow(Policy):
    def decide(self, snapshot):
        print("deciding", file=sys.stderr, flush=True)
        time.sleep(60)
        return Plan()
"""
HEAVY = ("numpy", "numba", "polars.dataframe", "scipy", "highspy", "pydantic", "matplotlib")


def imported_by(*arguments: str) -> set[str]:
    """The modules that a call of the program imports."""
    code = "import sys, json; from gantline.cli.main import main; main(sys.argv[1:]); print(json.dumps([*sys.modules]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", ["--help", "--version"])
def test_help_imports_nothing_heavy(arguments: str) -> None:
    assert not {*HEAVY} & imported_by(arguments)


def test_a_simulation_needs_no_numba_once_its_kernels_are_stored(cli: Cli) -> None:
    line = ("simulate", "day", "--trace-set", "jobs=120", "--cluster", "4x8", "--policy", "srtf")
    assert cli(*line).code == 0
    assert not {"numba", "highspy", "matplotlib"} & imported_by(*line)


def test_help_lists_every_command_and_goes_to_stdout(cli: Cli) -> None:
    told = cli("--help")
    assert told.code == 0
    assert told.err == ""
    for name in COMMANDS:
        assert f" {name} " in told.out


def test_each_command_is_one_line_of_a_narrow_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("--help").out.splitlines()
    for title, commands in GROUPS.values():
        assert any(title in line for line in lines)
        for name, (_, text) in commands.items():
            assert any(re.fullmatch(rf"│ {name} +{re.escape(text)} +│", line) for line in lines)


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_lists_its_commands_with_those_below_them(cli: Cli, group: str) -> None:
    told = cli("help", group)
    assert told.code == 0
    lines = told.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith("...") for line in lines), "each first sentence fits"
    for name in GROUPS[group][1]:
        assert any(line.startswith(f"  {name} ") for line in lines)
    assert ("    saturate  " in told.out) == (group == "runs")
    assert ("    allreduce  " in told.out) == (group == "traces")


def test_help_of_a_command_and_of_nothing_that_is_known(cli: Cli) -> None:
    assert cli("help", "simulate").out == cli("simulate", "--help").out
    assert cli("help").out == cli("--help").out
    told = cli("help", "job")
    assert told.code == 3
    assert "did you mean 'jobs'" in told.err


def test_an_old_spelling_still_works_and_names_the_new_one(cli: Cli) -> None:
    old, new = cli("place", "--topology", "summit", "--gpus", 1), cli("placement", "choose", "--topology", "summit", "--gpus", 1)
    assert (old.code, old.out) == (0, new.out)
    assert old.err == "gantline: note: 'gantline place' is spelt 'gantline placement choose'; the next version has this spelling alone\n"
    assert " place " not in cli("--help").out


def test_an_old_spelling_of_two_words_is_not_taken_for_one_of_one(cli: Cli) -> None:
    old, new = cli("profile", "company", "waits"), cli("profile", "colocation", "waits")
    assert old.code == new.code == 2
    assert old.err.startswith("gantline: note: 'gantline profile company' is spelt 'gantline profile colocation';")
    assert old.err.endswith(new.err)
    assert " company " not in cli("help", "traces").out


def test_every_command_has_help_of_its_own(cli: Cli) -> None:
    for name in COMMANDS:
        told = cli(name, "--help")
        assert told.code == 0
        assert f"gantline {name}" in told.out


def test_the_version_is_the_packages(cli: Cli) -> None:
    assert cli("--version").out.strip() == gantline.__version__


def test_python_m_gantline_is_the_same_program() -> None:
    done = subprocess.run([sys.executable, "-m", "gantline", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == gantline.__version__


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["simulat"], ["no command 'simulat'", "did you mean 'simulate'?", "gantline --help"]),
        (["policy", "lst"], ["no command 'lst'", "'list'", "gantline policy --help"]),
        (["--frobnicate"], ["no option '--frobnicate'"]),
        (["simulate"], ["TRACE is missing", "gantline simulate --help"]),
        (["simulate", "jobs.csv", "--policy", "fifo"], ["--cluster: no cluster is given"]),
        (["simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo", "--sed", "1"], ["no option '--sed', did you mean '--seed'?"]),
        (["simulate", "jobs.csv", "--cluster", "2x4", "--polcy", "fifo"], ["no option '--polcy', did you mean '--policy'?"]),
        (["simulate", "jobs.csv", "more.csv", "--cluster", "2x4", "--policy", "fifo"], ["'more.csv' is one argument too many"]),
        (["simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo", "-o", "yaml"], ['"yaml"', '"json"']),
        (["simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo", "--seed", "x"], ["--seed: 'x' is not a number"]),
        (["simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo", "--seed", "1.5"], ["--seed: '1.5' is not a whole number"]),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_code_2(cli: Cli, arguments: list[str], parts: list[str]) -> None:
    told = cli(*arguments)
    assert told.code == 2
    assert told.out == ""
    assert told.err.startswith("gantline: error: ")
    assert told.err.count("\n") == 1
    for part in parts:
        assert part in told.err


def test_a_defect_of_ours_says_how_to_see_more(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.delenv("GANTLINE_DEBUG", raising=False)
    assert failures.exit_code_of(broken, app) == failures.DEFECT
    err = capsys.readouterr().err
    assert "ZeroDivisionError: division by zero" in err
    assert "GANTLINE_DEBUG=1" in err
    assert "Traceback" not in err
    monkeypatch.setenv("GANTLINE_DEBUG", "1")
    failures.exit_code_of(broken, app)
    assert "Traceback" in capsys.readouterr().err


def test_an_error_of_the_system_names_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert failures.exit_code_of(lambda: (tmp_path / "no" / "x").write_text("x"), app) == 2
    assert f"{tmp_path}/no/x: no such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code", "told"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")])
def test_a_signal_in_the_middle_of_a_decision_ends_the_run_and_leaves_nothing_behind(
    folder: Path, number: signal.Signals, code: int, told: str
) -> None:
    (folder / "slow.py").write_text(SLOW)
    options = ["--cluster", "2x4", "--policy", "./slow.py:Slow", "--jobs-out", "j.csv"]
    command = [sys.executable, "-m", "gantline", "simulate", "jobs.csv", *options]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder)
    assert running.stderr.readline() == "deciding\n"
    os.kill(running.pid, number)
    _, err = running.communicate(timeout=60)
    assert running.returncode == code
    assert err.splitlines()[-1] == f"gantline: {told}"
    assert sorted(path.name for path in folder.iterdir() if path.suffix != "") == ["jobs.csv", "slow.py"]


def test_a_reader_that_leaves_early_is_no_error() -> None:
    """He has left before the first word, so that every word meets a closed pipe."""
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "gantline", "policy", "show", "fifo", "-o", "json"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (failures.PIPE_CLOSED, "")


def test_no_colour_reaches_a_pipe_or_a_person_who_wants_none(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    piped = cli("policy", "list").out
    assert "\x1b" not in piped
    assert piped.splitlines()[0].split("\t")[0] == "policy"
    words = ("simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[3" in cli(*words).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in cli(*words).out


@pytest.fixture
def markup_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many commands share their options, and two shells show what those mean: the markup of each text is taken out once."""
    once = cache(zsh.strip_markup)
    for shell in (zsh, fish):
        monkeypatch.setattr(shell, "strip_markup", once)


@pytest.mark.usefixtures("markup_read_once")
def test_a_shell_learns_every_command(cli: Cli, folder: Path) -> None:
    assert cli("completion", "bash", "--install", "--to", "gantline.bash").code == 0
    told_bash = (folder / "gantline.bash").read_text()
    assert "--decision-latency" in told_bash
    for told in (told_bash, cli("completion", "zsh").out, cli("completion", "fish").out):
        assert [name for name in COMMANDS if name not in told] == []
        behind = [line for line in told.splitlines() if "voda.afs_l" in line]
        assert len(behind) >= 8  # one for each command that takes a policy
        assert all("fair-share" in line for line in behind)


def test_a_narrow_terminal_is_enough(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "COLUMNS": "40"}.items():
        monkeypatch.setenv(name, value)
    told = cli("simulate", "jobs.csv", "--cluster", "2x4", "--policy", "fifo").out
    plain = re.sub("\x1b\\[[0-9;]*m", "", told)
    assert max(map(len, plain.splitlines())) <= 40
    assert "\x1b[3" not in told
    assert "100% done" in plain


def test_settings_may_follow_one_set() -> None:
    assert spread_settings(["--set", "a=1", "b=2", "x.csv"]) == ["--set", "a=1", "--set", "b=2", "x.csv"]
    assert spread_settings(["x", "--set", "a=1", "--set", "b=2", "-o", "c=3"]) == ["x", "--set", "a=1", "--set", "b=2", "-o", "c=3"]
    assert settings_of(["a=1", "b=x=y"]) == {"a": "1", "b": "x=y"}


@pytest.mark.parametrize("pairs", [["a"], ["=1"], ["a=1", "a=2"]])
def test_what_is_not_a_setting_is_refused(pairs: list[str]) -> None:
    with pytest.raises(UsageError, match="--set"):
        settings_of(pairs)


@pytest.mark.parametrize(("text", "value"), [("90", 90.0), ("15m", 900.0), ("2h", 7200.0), ("01:00:30", 3630.0), ("inf", float("inf"))])
def test_times_as_people_write_them(text: str, value: float) -> None:
    assert time_of(text, "--until") == value


@pytest.mark.parametrize("text", ["-5", "1.2.3", "soon", "nan", ""])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"--until: .*write 90"):
        time_of(text, "--until")


@pytest.mark.parametrize("text", ["5", "a:b", "3:", "-1:4"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="LO:HI"):
        window_of(text)


def test_a_table_too_wide_for_the_terminal_becomes_blocks_of_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = (Column("policy"), Column("metric"), Column("value", right=True), Column("interval", right=True))
    sheet = Sheet(columns, [("srtf", "mean completion time", "46.8 min", "-76.9..-46.1 %"), ("las", "makespan", "23.7 h", "")])
    monkeypatch.setenv("COLUMNS", "80")
    show_text(table(sheet))
    assert capsys.readouterr().out.splitlines()[1].split() == ["srtf", "mean", "completion", "time", "46.8", "min", "-76.9..-46.1", "%"]
    monkeypatch.setenv("COLUMNS", "40")
    show_text(table(sheet))
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "policy    srtf",
        "metric    mean completion time",
        "value     46.8 min",
        "interval  -76.9..-46.1 %",
        "",
        "policy    las",
        "metric    makespan",
        "value     23.7 h",
    ]


def test_a_terminal_that_knows_ascii_only_is_told_names_in_escapes(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job,arrival,gpus,duration\n\u00e9t\u00e9,0,1,9\n", encoding="utf-8")
    command = [sys.executable, "-m", "gantline", "trace", "shift", "jobs.csv", "--by", "0"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "\\xe9t\\xe9,0.0,1,9.0"
