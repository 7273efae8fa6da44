"""Lives of a service on a cluster, each ended by kill -9 at a random instant; jobs write down what they see (`chaos_job.py`)."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.live.lives import check_promises, steps_in, told
from tests.live.specs import ENDED, until

from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options

_JOB = str(Path(__file__).parents[1] / "live" / "chaos_job.py")
_BRISK = {"min_run": 1.0, "grace": 2.0}
_LIVES = multiprocessing.get_context("forkserver")  # a process in which Ray was never started
_LIVES.set_forkserver_preload(["gantline.live.service.serve", "gantline.live.runners.ray.runner", "gantline.live.runners.ray.actors"])


def serve_on(executor: str, home: Path, runner: dict[str, str], policy: str | None, env: dict[str, str]) -> None:
    """One life."""
    from gantline.live.service.serve import serve

    os.environ.update(env)
    serve(Options(Home(home), "cpu", policy, anew=_BRISK, executor=executor, runner=runner))


@dataclass
class Lives:
    """A service that is killed again and again, and its jobs."""

    folder: Path
    executor: str
    runner: dict[str, str]  # its own options
    seed: int
    env: dict[str, str] = field(default_factory=dict)
    known: list[str] = field(default_factory=list)
    adopted: list[float] = field(default_factory=list)  # seconds from each further start until the service answers and knows what runs

    def __post_init__(self) -> None:
        self.chance, self.home = random.Random(self.seed), Home(self.folder / "home")

    def run(self, jobs: int, kills: int) -> None:
        """Submit jobs while the service is killed so many times; then let them end."""
        self.start("srtf")
        try:
            for kill in range(kills):
                for _ in range(len(self.known), jobs * (kill + 1) // kills):
                    self.submit()
                time.sleep(self.chance.uniform(0.0, 3.0))
                self.kill()
                self.start()
            until(lambda: all(job["state"] in ENDED and not job["devices"] for job in self.client.jobs()))
            self.client.shutdown(drain=True)
            self.service.join()
        finally:
            self.kill()

    def start(self, policy: str | None = None) -> None:
        began = time.monotonic()
        self.home.address.unlink(missing_ok=True)
        self.service: ForkServerProcess = _LIVES.Process(
            target=serve_on, args=(self.executor, self.home.path, self.runner, policy, self.env)
        )
        self.service.start()
        until(lambda: self.home.announced() is not None or not self.service.is_alive())
        assert self.home.announced() is not None, "the service does not start"
        self.client = Client(home=self.home.path, timeout=60.0)
        self.client.jobs()
        if policy is None:
            self.adopted.append(time.monotonic() - began)

    def kill(self) -> None:
        self.client.close()
        self.service.kill()
        self.service.join()

    def submit(self) -> None:
        """Small jobs, and gangs with a rank per device."""
        gpus, steps = self.chance.choice((1, 1, 1, 2, 3)), self.chance.randint(20, 120)
        run = [sys.executable, "-S", "-E", _JOB, str(self.folder), str(steps)]
        spec = {"resources": {"gpus": gpus}, "checkpoint": {"grace": 5}, "estimate": steps / 30}
        self.known += self.client.submit(run, processes="gpus", **spec)

    def check(self) -> None:
        """No job is lost, none was on a device of another, no saved step was lost, and the record gives the decisions again."""
        jobs = check_promises(self.folder, self.home.store)
        for path in self.home.jobs.glob("*/checkpoint/steps*"):
            steps = steps_in(path)
            assert steps == list(range(1, len(steps) + 1)), f"a saved step was lost, or made twice: {path} {steps}"
        assert set(jobs) == set(self.known)
        assert {job["state"] for job in jobs.values()} == {"succeeded"}, [job for job in jobs.values() if job["state"] != "succeeded"]
        assert {line[0] for line in told(self.folder, "done")} == set(self.known)
