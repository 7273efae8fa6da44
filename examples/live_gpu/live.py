"""The jobs on real processes: through the service over HTTP where its libraries are there, else by a scheduler in this process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import workload
from gantline.core.errors import UnreachableError
from gantline.core.inputs import Submit
from gantline.runtime.launch import Launch
from gantline.runtime.local.runner import LocalRunner
from gantline.runtime.records import MemoryStore
from gantline.runtime.scheduler import Scheduler
from gantline.runtime.setup import Setup

ENDED = ("succeeded", "failed", "cancelled", "timeout", "rejected")
LIBRARIES = ("fastapi", "uvicorn", "httpx", "sqlalchemy", "alembic", "pydantic", "yaml")
_LONGEST = 1800.0  # seconds for all jobs of a policy


class Machine(Protocol):
    """Where jobs are run; times are seconds since its clock began."""

    def submit(self, job: workload.Work) -> str: ...

    def shown(self) -> dict[str, dict[str, Any]]: ...


def can_serve() -> bool:
    """Whether the libraries of the service are there."""
    return all(find_spec(name) is not None for name in LIBRARIES)


def run_policy(setup: Setup, devices: str, jobs: list[workload.Work], env: dict[str, str], served: bool) -> list[dict[str, Any]]:
    """One policy: submit as the jobs arrive, wait, and see."""
    with (_service if served else _in_process)(setup, devices, env) as machine:
        time.sleep(0.5)
        start, ids = time.monotonic(), []
        for job in jobs:
            time.sleep(max(0.0, start + job.arrival - time.monotonic()))
            ids.append(machine.submit(job))
        rows = []
        for id, job in zip(ids, jobs):
            shown = _wait(machine, ids, start)[id]
            if shown["state"] != "succeeded":
                raise RuntimeError(f"{job.kind} {shown['state']}: {shown['why']}")
            row = {"kind": job.kind, "arrival": shown["submitted"], "jct": shown["finished"] - shown["submitted"]}
            rows.append({**row, "wait": shown["started"] - shown["submitted"], "epochs": shown["epoch"]})
        return rows


def _wait(machine: Machine, ids: list[str], start: float) -> dict[str, dict[str, Any]]:
    while True:
        found = machine.shown()
        if all(found[id]["state"] in ENDED for id in ids):
            return found
        if time.monotonic() - start > _LONGEST:
            raise RuntimeError(f"jobs did not end within {_LONGEST:g} s")
        time.sleep(0.2)


# --- over HTTP ------------------------------------------------------------------------------------------------------------
class _Served:
    def __init__(self, home: Path, env: dict[str, str]) -> None:
        from gantline.service.client import Client

        self.client, self.env = Client(home=home), env
        self.zero = self.client.status()["created"]

    def submit(self, job: workload.Work) -> str:
        return self.client.submit(job.spec(self.env))[0]

    def shown(self) -> dict[str, dict[str, Any]]:
        found = {}
        for job in self.client.jobs():
            times = {to: None if job[of] is None else job[of] - self.zero for to, of in _TIMES.items()}
            found[job["id"]] = {**job, **times}
        return found


_TIMES = {"submitted": "submitted", "started": "started", "finished": "ended"}


@contextmanager
def _service(setup: Setup, devices: str, env: dict[str, str]) -> Iterator[Machine]:
    """`gantline up` in a folder of its own, `gantline down` at the end."""
    home = Path(tempfile.mkdtemp(prefix="gantline-live-"))
    gantline = [sys.executable, "-m", "gantline"]
    rules = [f"--devices={devices}", f"--policy={setup.policy}", f"--round={setup.round}", f"--profiles={setup.profiles}"]
    rules += [word for key, value in setup.settings.items() for word in ("--set", f"{key}={value}")]
    try:
        subprocess.run([*gantline, "up", f"--home={home}", "--detach", *rules], check=True, stdout=subprocess.DEVNULL)
        try:
            yield _Served(home, env)
        finally:
            subprocess.run([*gantline, "down", f"--home={home}"], check=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


# --- in this process ------------------------------------------------------------------------------------------------------
class _Here:
    def __init__(self, scheduler: Scheduler, env: dict[str, str]) -> None:
        self.scheduler, self.env = scheduler, {**env, "PYTHONPATH": os.environ["PYTHONPATH"]}

    def submit(self, job: workload.Work) -> str:
        return self.scheduler.submit(_WithEnvironment(job, self.env))[0]

    def shown(self) -> dict[str, dict[str, Any]]:
        return {id: job.to_json() for id, job in self.scheduler.view().jobs.items()}


class _WithEnvironment:
    def __init__(self, job: Any, env: dict[str, str]) -> None:
        self.job, self.env = job, env

    def expand(self) -> list[Any]:
        return [self]

    def to_submit(self, id: str, now: float) -> Submit:
        told: Submit = self.job.to_submit(id, now)
        return told

    def launch(self) -> Launch:
        return replace(self.job.launch(), env=self.env)

    def to_json(self) -> dict[str, Any]:
        return dict(self.job.to_json())


@contextmanager
def _in_process(setup: Setup, devices: str, env: dict[str, str]) -> Iterator[_Here]:
    home = Path(tempfile.mkdtemp(prefix="gantline-live-"))
    scheduler = Scheduler(MemoryStore(), LocalRunner(home, devices), setup=setup)
    scheduler.start()
    try:
        scheduler.rehearse()  # so that everything is compiled
        yield _Here(scheduler, env)
    finally:
        scheduler.stop(drain=True, timeout=30.0)
        shutil.rmtree(home, ignore_errors=True)


class Nothing:
    """A job that does nothing for a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def to_submit(self, id: str, now: float) -> Submit:
        return Submit(now, {"id": id, "gpus": 1, "estimate": self.seconds})

    def launch(self) -> Launch:
        return Launch(("/bin/sleep", str(self.seconds)))

    def to_json(self) -> dict[str, Any]:
        return {"name": "nothing"}


def runner_overhead(devices: str, count: int = 8, seconds: float = 0.7) -> float:
    """Seconds that the runner adds between one job's end and the next one's beginning: a queue of jobs that do nothing on one device."""
    first = devices.split(",")[0].split(":")[0] + ":1"
    with _in_process(Setup(), first, {}) as machine:
        start, ids = time.monotonic(), []
        for place in range(count):
            for _ in range(20):  # the first decisions are compiled, which may take longer than a request waits
                try:
                    ids += machine.scheduler.submit(_WithEnvironment(Nothing(seconds), {}), request=str(place))
                    break
                except UnreachableError:
                    continue
        ends = sorted(shown["finished"] for id, shown in _wait(machine, ids, start).items())
        return (ends[-1] - ends[1]) / (count - 2) - seconds
