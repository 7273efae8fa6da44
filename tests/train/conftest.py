"""Jobs for tests: no environment of a runner around them, signals given back at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.train.listener import Listener, listening

from gantline import train
from gantline.train import Job, Membership

LIVE_GPU = Path(__file__).parents[2] / "examples" / "live_gpu"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as one:
        yield one


@pytest.fixture
def join(tmp_path: Path) -> Iterator[Callable[..., Job]]:
    """Join with an environment of one's own; all jobs are closed at the end."""
    jobs: list[Job] = []

    def make(environment: dict[str, str] | None = None, **options: Any) -> Job:
        member = Membership.read({"GANTLINE_CHECKPOINT": str(tmp_path / "checkpoint"), **(environment or {})})
        jobs.append(train.Job(member, **{"interval": 0.01, **options}))
        return jobs[-1]

    yield make
    for job in reversed(jobs):
        job.close()


def scheduled(listener: Listener, epoch: int = 3) -> dict[str, str]:
    """The environment of a job that a service runs."""
    return {"GANTLINE_URL": listener.url, "GANTLINE_JOB_ID": "j1", "GANTLINE_JOB_TOKEN": "secret", "GANTLINE_EPOCH": str(epoch)}


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of an example."""
    monkeypatch.syspath_prepend(str(LIVE_GPU))
    return import_module("predict")
