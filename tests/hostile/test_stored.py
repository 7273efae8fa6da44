"""Records, run folders and sweeps that somebody spoilt: whoever opens one gets an answer or one clear message, and nothing else happens."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.hostile.test_given_code import JOBS, PROGRAM

from gantline.cli.main import main
from gantline.live.service.results_folder import ResultsFolder, about, detail

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
        run = ["simulate", "jobs.csv", "--cluster", "1x4", "--policy"]
        assert main([*run, "las", "--round", "30", "--placement", "consolidated", "--record", "run.jsonl", "--out", "run"]) == 0
        assert main([*run, "fifo", "--executor", "faulty:3", "--record", "faulty.jsonl"]) == 0
        assert main(["compare", "jobs.csv", "--cluster", "1x4", "--policy", "fifo,srtf", "--out", "sweep", "--workers", "1"]) == 0
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
