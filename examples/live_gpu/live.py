"""The jobs on real processes: through the service over HTTP where its libraries are there, else by a scheduler in this process."""

from __future__ import annotations

import os
import shutil
import statistics
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
from gantline.core.inputs import Submit
from gantline.runtime.launch import Launch
from gantline.runtime.local.devices import declared
from gantline.runtime.local.runner import LocalRunner
from gantline.runtime.records import MemoryStore
from gantline.runtime.scheduler import Scheduler
from gantline.runtime.setup import Setup
from gantline.runtime.trials import Place, Trials

ENDED = ("succeeded", "failed", "cancelled", "timeout", "rejected")
LIBRARIES = ("fastapi", "uvicorn", "httpx", "sqlalchemy", "alembic", "pydantic", "yaml")
_LONGEST = 1800.0  # seconds for all jobs of a policy
_LOOK = 0.25  # seconds between two looks at how they are


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
        where: dict[str, list[str]] = {}
        for job in jobs:
            while (left := start + job.arrival - time.monotonic()) > 0:
                time.sleep(min(left, _LOOK))
                _seen(machine, where)
            ids.append(machine.submit(job))
        shown = _wait(machine, ids, start, where)
        rows = []
        for id, job in zip(ids, jobs):
            one = shown[id]
            if one["state"] != "succeeded":
                raise RuntimeError(f"{job.kind} {one['state']}: {one['why']}")
            came, began, gone = one["submitted"], one["started"], one["finished"]
            times = {"arrival": round(came, 3), "jct": round(gone - came, 3), "wait": round(began - came, 3)}
            rows.append({"kind": job.kind, **times, "epochs": one["epoch"], "where": where.get(id, [])})
        return rows


def _wait(machine: Machine, ids: list[str], start: float, where: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    while True:
        found = _seen(machine, where)
        if all(found[id]["state"] in ENDED for id in ids):
            return found
        if time.monotonic() - start > _LONGEST:
            raise RuntimeError(f"jobs did not end within {_LONGEST:g} s")
        time.sleep(_LOOK)


def _seen(machine: Machine, where: dict[str, list[str]]) -> dict[str, dict[str, Any]]:
    """How the jobs are, with a note of the devices that each was seen on."""
    found = machine.shown()
    for id, one in found.items():
        for device in map(str, one.get("devices") or ()):
            if where.setdefault(id, [])[-1:] != [device]:
                where[id].append(device)
    return found


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
    rules = [f"--devices={devices}", f"--policy={setup.policy}", f"--round={setup.round}"]
    rules += [f"--profiles={setup.profiles}"] if setup.profiles else []
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


def overhead(devices: str, env: dict[str, str], served: bool, count: int = 8, steps: int = 10) -> float:
    """Seconds that a job takes longer under the scheduler than by itself: a queue of jobs that only wait, on one device."""
    type = devices.split(",")[0].split(":")[0]
    job = workload.Work("nothing", 0.0, steps, {type: 1.0})
    with (_service if served else _in_process)(Setup(), f"{type}:1", env) as machine:
        ids = [machine.submit(job) for _ in range(count)]
        shown = _wait(machine, ids, time.monotonic(), {})
        ends = sorted(shown[id]["finished"] for id in ids)
    place, trials = Place.on(declared(f"{type}:1"), type, 1), Trials(env=env)
    alone = [trials.run(workload.command("nothing"), place, steps) for _ in range(count // 2)]
    return max(0.0, (ends[-1] - ends[1]) / (count - 2) - statistics.median(alone))
