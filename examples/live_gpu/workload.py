"""The jobs of the experiment: which kinds there are, how long each is made, how many devices it has, and when it arrives."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantline.core.inputs import Submit
from gantline.live.jobs.launch import Launch
from gantline.models.profiles.bundle import Bundle, Speed

JOBS = str(Path(__file__).with_name("jobs.py"))
#: three programs, each with two batches, which keep a slice busy: where launching kernels takes longer than they do, a speed is that of
#: a host's cores, and differs by a tenth from one job to the next
ON_GPU = {
    "conv-256": ("conv", "--batch", "256"),
    "conv-512": ("conv", "--batch", "512"),
    "transformer-128": ("transformer", "--batch", "128"),
    "transformer-256": ("transformer", "--batch", "256"),
    "recommendation-65536": ("recommendation", "--batch", "65536"),
    "recommendation-262144": ("recommendation", "--batch", "262144"),
}
#: for machines without a GPU: jobs that only wait, six lengths of a step
ON_CPU = {f"idle-{pause}": ("idle", "--pause", f"{pause / 1000}") for pause in (10, 15, 20, 25, 30, 40)}


def kinds_for(devices: str) -> Mapping[str, tuple[str, ...]]:
    """The kinds that run on these devices."""
    return ON_CPU if devices.startswith("cpu") else ON_GPU


def command(kind: str, steps: int) -> tuple[str, ...]:
    """How a job of a kind is run; a step of a gang is as many steps of one device as it has ranks."""
    return (sys.executable, JOBS, *{**ON_GPU, **ON_CPU}[kind], "--steps", str(steps))


def launch(kind: str, steps: int, env: Mapping[str, str]) -> Launch:
    """The same for a runner: a rank per device, a checkpoint when it is stopped."""
    return Launch(command(kind, steps), env=dict(env), processes=0, grace=60.0, resumes=True)


@dataclass(frozen=True)
class Work:
    """One job of the experiment; a specification, as the scheduler takes it."""

    kind: str
    arrival: float
    steps: int  # of one device
    gpus: int  # that it asks for
    seconds: Mapping[tuple[str, int], float]  # training alone on each seat that it may have
    env: Mapping[str, str]

    @property
    def asked(self) -> float:
        """Seconds of training alone at the size that it asks for, on its best type."""
        return min(seconds for (_, size), seconds in self.seconds.items() if size == self.gpus)

    @property
    def sizes(self) -> list[int]:
        return sorted({size for _, size in self.seconds})

    def expand(self) -> list[Work]:
        return [self]

    def first(self) -> Work:
        return self

    def to_submit(self, id: str, now: float) -> Submit:
        device_counts = sorted(self.seconds, key=lambda device_count: (device_count[1] != self.gpus, self.seconds[device_count]))
        options = [{"type": kind, "gpus": size, "rate": self.asked / self.seconds[kind, size]} for kind, size in device_counts]
        sizes = {"gpus": self.gpus, "min_gpus": self.sizes[0], "max_gpus": self.sizes[-1]}
        return Submit(now, {"id": id, **sizes, "model": self.kind, "estimate": self.asked, "options": options, "checkpoint": "inf"})

    def launch(self) -> Launch:
        return launch(self.kind, self.steps, self.env)

    def launches(self, number: str) -> list[Launch]:
        return [self.launch()]

    def to_json(self) -> dict[str, Any]:
        return {"name": self.kind}

    def row(self, name: str, arrival: float) -> dict[str, object]:
        """The same job as a row of a trace."""
        device_counts = sorted(self.seconds, key=lambda device_count: (device_count[1] != self.gpus, self.seconds[device_count]))
        return {
            "job": name,
            "arrival": arrival,
            "gpus": self.gpus,
            "min_gpus": self.sizes[0],
            "max_gpus": self.sizes[-1],
            "duration": self.asked,
            "model": self.kind,
            "options": "|".join(f"{kind}:{size}={self.seconds[kind, size]!r}" for kind, size in device_counts),
        }


def make(bundle: Bundle, terms: Mapping[str, Any], devices: int, env: Mapping[str, str] | None = None) -> list[Work]:
    """The jobs that the terms describe, as the profiles make them: kinds in turn, a third elastic, arrivals that give the load."""
    rng, kinds, found = random.Random(terms["seed"]), list(bundle.jobs), []
    for place in range(terms["jobs"]):
        kind = kinds[place % len(kinds)]
        is_elastic = place % 3 == 2
        gpus = rng.choice(terms["gpus"])
        alone = {(type, size): _pace(speed, size) for (type, size), speed in bundle[kind].alone.items()}
        pace = min(seconds for (_, size), seconds in alone.items() if size == gpus)
        steps = max(int(rng.choice(terms["seconds"]) / pace), 1)
        device_counts = {device_count: steps * each for device_count, each in alone.items() if is_elastic or device_count[1] == gpus}
        found.append(Work(kind, 0.0, steps, gpus, device_counts, env or {}))
    held = sum(job.gpus * _held(bundle, job) for job in found)
    gaps = [rng.expovariate(1.0) for _ in found]
    scale, at, placed = held / (terms["load"] * devices) / sum(gaps), 0.0, []
    for job, gap in zip(found, gaps):
        placed.append(Work(job.kind, round(at, 3), job.steps, job.gpus, job.seconds, job.env))
        at += gap * scale
    return placed


def _pace(speed: Speed, size: int) -> float:
    """Seconds per step of one device, in a gang of that size alone on its node."""
    return speed.line.seconds / size


def _held(bundle: Bundle, job: Work) -> float:
    """Seconds that a job holds the devices that it asks for, on average over their types."""
    starts = {type: speed.line.startup for (type, size), speed in bundle[job.kind].alone.items() if size == job.gpus}
    return statistics.fmean(start + job.seconds[type, job.gpus] for type, start in starts.items())
