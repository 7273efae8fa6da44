"""The command line as a test sees it: a line in; exit code, stdout and stderr out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gantline.cli.main import main


@dataclass(frozen=True)
class Result:
    """What one call of the program left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Result]
JOBS = "job,arrival,gpus,duration,user\na,0,4,100,ana\nb,10,2,50,bo\nc,20,2,200,ana\nd,30,8,40,bo\ne,40,1,10,ana\n"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run ``gantline`` in this process."""

    def run(line: object, *more: object) -> Result:
        """A line as a shell would take it apart, and further arguments as they are."""
        capsys.readouterr()
        code = main([*shlex.split(str(line)), *(str(argument) for argument in more)])
        streams = capsys.readouterr()
        return Result(code, streams.out, streams.err)

    return run


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a trace of five jobs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.csv").write_text(JOBS, encoding="utf-8")
    return tmp_path
