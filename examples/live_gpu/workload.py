"""The jobs of the experiment: which kinds there are, how long each is made, and when it arrives."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path

from gantline.core.inputs import Submit
from gantline.performance.bundle import Bundle
from gantline.runtime.launch import Launch

JOBS = str(Path(__file__).with_name("jobs.py"))
#: a way that is slower than the best by more than this is not offered
WORST = 12.0

ON_GPU = {
    "conv-4": ("conv", "--batch", "4"),
    "conv-512": ("conv", "--batch", "512"),
    "transformer-2": ("transformer", "--batch", "2"),
    "transformer-64": ("transformer", "--batch", "64"),
    "recommendation-128": ("recommendation", "--batch", "128"),
    "recommendation-8192": ("recommendation", "--batch", "8192"),
}
ON_CPU = {
    "idle-2x": ("idle", "--pause", "cpu-fast=0.01,cpu-slow=0.02"),
    "idle-3x": ("idle", "--pause", "cpu-fast=0.01,cpu-slow=0.03"),
    "idle-5x": ("idle", "--pause", "cpu-fast=0.01,cpu-slow=0.05"),
}
#: for what the scheduler adds to any job
NOTHING = {"nothing": ("idle", "--pause", "0.05")}


def command(kind: str) -> tuple[str, ...]:
    """How a job of a kind is run; {steps} stands for its length."""
    return (sys.executable, JOBS, *{**ON_GPU, **ON_CPU, **NOTHING}[kind], "--steps", "{steps}")


@dataclass(frozen=True)
class Work:
    """One job of the experiment; a specification, as the scheduler takes it."""

    kind: str
    arrival: float
    steps: int
    seconds: dict[str, float]  # training alone on each type that is offered, the best first

    @property
    def command(self) -> tuple[str, ...]:
        return tuple(word.replace("{steps}", str(self.steps)) for word in command(self.kind))

    def expand(self) -> list[Work]:
        return [self]

    def to_submit(self, id: str, now: float) -> Submit:
        best = min(self.seconds.values())
        options = [{"type": kind, "gpus": 1, "rate": best / seconds} for kind, seconds in self.seconds.items()]
        return Submit(now, {"id": id, "gpus": 1, "model": self.kind, "estimate": best, "options": options, "checkpoint": "inf"})

    def launch(self) -> Launch:
        return Launch(self.command, grace=60.0, resumes=True)

    def to_json(self) -> dict[str, object]:
        return {"name": self.kind}

    def spec(self, env: dict[str, str]) -> dict[str, object]:
        """The same as a specification that `gantline submit` takes."""
        best = min(self.seconds.values())
        ways = [{"accelerators": f"{kind}:1", "rate": best / seconds} for kind, seconds in self.seconds.items()]
        return {
            "name": self.kind,
            "run": list(self.command),
            "model": self.kind,
            "estimate": best,
            "resources": {"any_of": ways},
            "checkpoint": {"grace": 60},
            "progress": {"total": self.steps},
            "env": env,
        }

    def row(self, place: int) -> dict[str, object]:
        """The same job as a row of a trace."""
        ways = "|".join(f"{kind}:1={seconds!r}" for kind, seconds in self.seconds.items())
        return {
            "job": str(place),
            "arrival": self.arrival,
            "gpus": 1,
            "duration": min(self.seconds.values()),
            "model": self.kind,
            "options": ways,
        }


def make(bundle: Bundle, count: int, *, mean: float, gap: float, seed: int = 1) -> list[Work]:
    """So many jobs: kinds in turn, lengths from 0.4 to 1.4 of the mean (seconds on the best type), a gap between arrivals."""
    small = [kind for kind in bundle.jobs if _ways(bundle, kind)[1:]]  # those that may run on several types come twice as often
    rng, kinds, found, at = random.Random(seed), [*small, *bundle.jobs], [], 0.0
    for place in range(count):
        kind = kinds[place % len(kinds)]
        ways = _ways(bundle, kind)
        steps = max(int(mean * rng.choice((0.4, 0.7, 1.0, 1.4)) / ways[0][0]), 1)
        found.append(Work(kind, at, steps, {type: steps * each for each, type in ways}))
        at += round(rng.expovariate(1 / gap), 2)
    return found


def _ways(bundle: Bundle, kind: str) -> list[tuple[float, str]]:
    """Seconds per step and type, the best first, without those that are too slow to be offered."""
    found = sorted((speed.line.seconds, type) for (type, gpus), speed in bundle[kind].alone.items() if gpus == 1)
    return [way for way in found if way[0] <= WORST * found[0][0]]
