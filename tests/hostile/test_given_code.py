"""Code comes from the command line alone: what a file names, which somebody else may have made, is never loaded."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live.specs import ended, running, submit
from tests.typed import typed

from gantline.cli.main import main
from gantline.live.service.results_folder import ResultsFolder, about, detail
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


def failed(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """What the command says when it fails."""
    capsys.readouterr()
    assert typed(line) != 0
    return capsys.readouterr().err


def changed(change: Callable[[list[Line]], None]) -> None:
    """The record with something else in it."""
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    change(lines)
    lines[0]["lines"] = len(lines) - 1
    Path("run.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize("how", ["evil.py:Evil", "evil.py", "./evil.py:Evil", "absolute", "evil.yaml", "evil:Evil", "os:system"])
def test_a_record_does_not_say_which_policy_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str], how: str) -> None:
    assert typed("simulate jobs.csv --cluster 1x4 --policy fifo --record run.jsonl") == 0
    name = f"{mark.with_name('evil.py')}:Evil" if how == "absolute" else how
    changed(lambda lines: lines[0].update(policy=name))
    told = failed(capsys, "replay run.jsonl")
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
    assert typed("simulate jobs.csv --cluster 1x4 --policy fifo --record run.jsonl") == 0
    changed(change)
    failed(capsys, "replay run.jsonl")
    assert not mark.exists()


@pytest.mark.parametrize("option", ["checkpoint", "resume", "executor", "record", "inputs", "spec", "on_progress"])
def test_a_record_names_no_file_to_write(mark: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    assert typed("simulate jobs.csv --cluster 1x4 --policy fifo --regime blox --round 10 --record run.jsonl") == 0
    changed(lambda lines: lines[0]["options"].update({option: "written", "checkpoint_every": 10}))
    failed(capsys, "replay run.jsonl")
    assert not Path("written").exists()


def test_what_the_command_line_names_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("simulate jobs.csv --cluster 1x4 --policy ./evil.yaml --record run.jsonl") == 0
    mark.unlink()
    assert typed("replay run.jsonl --policy ./evil.py:Evil") == 0
    assert mark.exists()
    told = failed(capsys, "replay run.jsonl --policy ./evil.py:Evil --placement ./evil.py:Rule")
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
    assert "--policy ./evil.py" in failed(capsys, f"replay {home}")
    assert not mark.exists()
    assert typed(f"replay {home} --policy ./evil.py") == 0
    assert mark.exists()
    assert "--policy ./evil.py" in failed(capsys, f"replay {home} --policy srtf")


@pytest.mark.parametrize("field", ["present", "placement"])
@pytest.mark.parametrize("command", ["explain a", "forecast", "what-if --add 1x4", "decide"])
def test_a_snapshot_does_not_say_what_is_loaded(mark: Path, capsys: pytest.CaptureFixture[str], command: str, field: str) -> None:
    jobs = [{"id": "a", "gpus": 1, "estimate": 10}]
    snapshot = {"cluster": "1x4", "jobs": jobs, **({"placement": "evil.py:Rule"} if field == "placement" else {})}
    present = {"policy": "evil.py:Evil" if field == "present" else "fifo"}
    Path("now.json").write_text(json.dumps({"kind": "watched", "version": 1, "present": present, "snapshot": snapshot}))
    if command == "decide":
        typed("decide now.json --policy fifo")
    else:
        failed(capsys, f"{command} --snapshot now.json")
    assert not mark.exists()


def test_an_experiment_file_names_no_code_that_the_command_line_does_not(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("experiment.yaml").write_text("version: 1\ntrace: jobs.csv\ncluster: 1x4\npolicies: [fifo, 'evil.py:Evil']\n")
    assert "--policy ./evil.py:Evil" in failed(capsys, "experiment check experiment.yaml")
    assert not mark.exists()
    (other := mark.with_name("other")).mkdir()
    (other / "evil.py").write_text(Path("evil.py").read_text().replace("it ran", "the other ran"))
    failed(capsys, "experiment check experiment.yaml --policy other/evil.py:Evil")  # of that name, but another file
    assert not mark.exists()
    assert typed("experiment check experiment.yaml --policy ./evil.py:Evil") == 0
    assert mark.read_text() == "it ran"


def test_stored_runs_and_sweeps_are_shown_without_their_code(mark: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("compare jobs.csv --cluster 1x4 --policy fifo,evil.py:Evil --out kept --workers 1") == 0
    assert typed("simulate jobs.csv --cluster 1x4 --policy evil.py:Evil --out run") == 0
    mark.unlink()
    assert typed("report kept -o kept.html") == 0
    assert typed("report run -o run.html") == 0
    assert typed("plot jct-cdf run -o run.svg") == 0
    assert not mark.exists()


# Records, run folders and sweeps that somebody spoilt: whoever opens one gets an answer or one clear message, and nothing else happens.

ANSWERS = (0, 1, 2, 3, 4)  # of a command: what it found, or what is wrong with the file; 70 would be a defect
_EXAMPLES = 8
_ABSURD: list[Any] = [
    None, True, False, -1, 0, 1, 10**12, 10**30, -(10**400), 1e308, -1e-308, "inf", "nan", "", "x" * 5000, "\x1b[2J", "\ud800",
    "../../evil", "evil.py:Evil", "./evil.py", "evil.yaml", "evil:Evil", "os:system", "@/dev/zero", "/dev/zero", [], {}, [[]], {"": {}},
    {"__array__": [1], "dtype": "O", "shape": [1]}, {"__array__": [], "dtype": "f8", "shape": [10**9, 10**9]}, {"__tuple__": 3},
    "999999999x999999999", "1000000x8",
]  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record, a run, a sweep and a snapshot as they should be, and a program that nobody names."""
    folder = tmp_path_factory.mktemp("good")
    before = Path.cwd()
    os.chdir(folder)
    try:
        (folder / "jobs.csv").write_text(JOBS)
        run = "simulate jobs.csv --cluster 1x4 --policy"
        assert typed(f"{run} las --round 30 --placement consolidated --record run.jsonl --out run") == 0
        assert typed(f"{run} fifo --executor faulty:3 --record faulty.jsonl") == 0
        assert typed("compare jobs.csv --cluster 1x4 --policy fifo,srtf --out sweep --workers 1") == 0
        (folder / "now.json").write_text((folder / "run.jsonl").read_text().splitlines()[1])
    finally:
        os.chdir(before)
    return folder


def spoilt_value(value: Any, draw: random.Random) -> Any:
    """The value with one part of it changed, left out, or added."""
    if isinstance(value, (dict, list)) and value and draw.random() < 0.85:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = draw.choice(keys)
        inner = value[key]
        if draw.random() < 0.15:
            del value[key]
        else:
            value[key] = spoilt_value(inner, draw)
        return value
    return draw.choice(_ABSURD)


def spoil(file: Path, draw: random.Random) -> None:
    """Change a file, or what it is."""
    how = draw.choice(["value", "value", "value", "value", "cut", "bytes", "deep", "digits", "pipe", "link", "folder"])
    content = file.read_bytes()
    if how == "value" and file.suffix in (".json", ".jsonl"):
        lines = content.decode("utf-8", "replace").splitlines() or ["{}"]
        at = 0 if draw.random() < 0.5 else draw.randrange(len(lines))
        whole = "\n".join(lines) if file.suffix == ".json" else lines[at]
        try:
            text = json.dumps(spoilt_value(json.loads(whole), draw))
        except (ValueError, RecursionError):
            text = "{}"
        file.write_text("\n".join([*lines[:at], text, *lines[at + 1 :]]) + "\n" if file.suffix == ".jsonl" else text)
    elif how == "cut":
        file.write_bytes(content[: draw.randrange(len(content) + 1)])
    elif how in ("deep", "digits") and file.suffix in (".json", ".jsonl"):
        file.write_text('{"kind":"record","version":2,"policy":' + ("[" * 100_000 if how == "deep" else "9" * 10_000) + "}")
    elif how in ("pipe", "link", "folder"):
        file.unlink()
        {"pipe": os.mkfifo, "link": lambda path: path.symlink_to("/dev/zero"), "folder": os.mkdir}[how](file)
    else:
        changed = bytearray(content)
        for _ in range(draw.randint(1, 8) if changed else 0):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        file.write_bytes(changed)


def opened(name: str) -> list[Callable[[], int]]:
    """All that opens it."""
    commands = {
        "run.jsonl": [["replay", "run.jsonl"]],
        "faulty.jsonl": [["replay", "faulty.jsonl"]],
        "now.json": [
            ["decide", "now.json", "--policy", "fifo"],
            ["forecast", "--snapshot", "now.json", "--present", "fifo", "--draws", "2"],
        ],
        "run": [["report", "run", "-o", "out.html"], ["plot", "jct-cdf", "run", "-o", "out.svg"]],
        "sweep": [["report", "sweep", "-o", "out.html"], ["plot", "load", "sweep", "-o", "out.svg"]],
    }[name]

    def viewed() -> int:
        folder = ResultsFolder(Path.cwd())
        for result in folder.results().values():
            about(result)
            detail(folder, result.name)
        return 0

    return [*(lambda line=line: main(line) for line in commands), *([viewed] if name in ("run", "sweep") else [])]


@pytest.mark.parametrize("name", ["run.jsonl", "faulty.jsonl", "now.json", "run", "sweep"])
def test_what_was_spoilt_runs_nothing_writes_nothing_and_is_soon_over(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    mark = tmp_path / "mark"
    for seed in range(_EXAMPLES // (1 if name.endswith("l") else 2)):
        draw, here = random.Random(f"{name} {seed}"), tmp_path / "outer" / str(seed) / "inner"
        shutil.copytree(good, here)
        monkeypatch.chdir(here)
        (here / "evil.py").write_text(PROGRAM.format(mark=str(mark)))
        (here / "evil.yaml").write_text("policy: ./evil.py:Evil\n")
        files = [here / name] if (here / name).is_file() else sorted(one for one in (here / name).rglob("*") if one.is_file())
        for _ in range(draw.randint(1, 2)):
            if (file := draw.choice(files)).is_file() and not file.is_symlink():
                spoil(file, draw)
        there = set(here.rglob("*"))
        for call in opened(name):
            code = call()
            told = capsys.readouterr().err
            assert code in ANSWERS, (seed, told)
            assert "Traceback" not in told, (seed, told)
            assert not mark.exists(), seed
        new = {one.relative_to(here).as_posix() for one in here.rglob("*") if one not in there}
        assert new <= {"out.html", "out.svg"}, seed
        assert [one.name for one in (tmp_path / "outer" / str(seed)).iterdir()] == ["inner"], seed
        shutil.rmtree(here.parent)
