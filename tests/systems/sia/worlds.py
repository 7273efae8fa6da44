"""A small measured world: a network, a faster and a slower GPU type, times that can be worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline.models.goodput.measured import Application, Profiles, StepTimes, Training
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

EPOCHS = 4
EPOCH_STEPS = 100.0  # at the base batch
BASE = 32.0


def training(noise: float = 0.0) -> Training:
    """Four epochs of a hundred steps; without noise a larger batch is worth no more per step."""
    batches = np.array([BASE, 64.0, 128.0, 256.0])
    progress = np.tile(np.arange(1, EPOCHS + 1) * EPOCH_STEPS, (len(batches), 1))
    ones = np.ones_like(progress)
    return Training(batches, progress, progress.copy(), ones, noise * ones)


def step_times(second: float, size: int, shapes: tuple[tuple[int, ...], ...] = ((1,), (2,), (4,), (4, 4))) -> StepTimes:
    """A local batch of 32 takes ``second`` s; averaging takes a tenth of that, and three tenths across nodes."""
    placements, wide = {}, []
    for shape in shapes:
        if max(shape) > size:
            continue
        sync = second * (0.0 if shape == (1,) else 0.1 if len(shape) == 1 else 0.3)
        placements[shape] = np.array([[m, second * (0.25 + 0.75 * m / 32) + sync, sync + 1e-4 * second] for m in (8.0, 16.0, 32.0, 64.0)])
        wide += [[len(shape) + 4, sum(shape) + 16, m, 2 * second, sync + second] for m in (8.0, 64.0)]
    return StepTimes(placements, np.array(wide))


def profiles(noise: float = 0.0) -> Profiles:
    """`net` was measured on slow, fast and odd GPUs; `pipe` is a pipeline of two stages on fast ones and four on slow ones."""
    net = Application("net", training(noise), {"slow": step_times(2.0, 4), "fast": step_times(1.0, 8), "odd": step_times(1.0, 6)})
    stages = {"fast": step_times(0.01, 8, ((2,), (4,), (8,))), "slow": step_times(0.01, 4, ((4,), (4, 4)))}
    course = Training(
        *(np.array(each) for each in ([12.0, 400.0], [[20.0, 40.0]] * 2, [[20.0, 40.0]] * 2, [[1.0, 1.0]] * 2, [[9.0, 9.0]] * 2))
    )
    return Profiles({"net": net, "pipe": Application("pipe", course, stages)}, "a small world")


def job(name: str, arrival: float = 0.0, app: str = "net", **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": arrival, "gpus": 1, "duration": 1000.0, "app": app, **more}


def run(jobs: list[dict[str, Any]], cluster: str = "slow:2x4,fast:1x8", noise: float = 0.0, policy: str = "sia", **settings: Any) -> Run:
    """A run in the regime sia."""
    return simulate(jobs, cluster, policy, regime="sia", profiles=profiles(noise), settings=settings)


def held(found: Run) -> dict[str, list[tuple[float, float, str, int]]]:
    """What each job held: (from, to, type, GPUs) one after the other."""
    spells: dict[str, list[tuple[float, float, str, int]]] = {}
    for row in found.allocations.sort("start").iter_rows(named=True):
        spells.setdefault(row["job"], []).append((row["start"], row["end"], row["type"], row["gpus"]))
    return spells
