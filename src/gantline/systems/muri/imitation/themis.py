"""Themis as Muri's simulator has it: shares of the GPUs that bound the worst finish-time fairness, then turns by share over time run.

The time that a job would take on its fair share is counted in iterations there, as if a share were a speed. Only the jobs that attain the
worst fairness have a share that is determined; here every job gets the least that keeps it no worse off.
"""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.jit import kernel
from gantline.systems.muri.imitation.clock import MuriGroup
from gantline.systems.muri.imitation.jobs import MuriJob
from gantline.systems.muri.imitation.orders import admit

_HALVINGS = 100
_NEVER_RAN = 1e9


class ThemisSchedule:
    """Jobs by what they should have had, most first."""

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self._listed: list[MuriJob] = []
        self._isolated: dict[MuriJob, float] = {}  # what is done, over the fair shares at which it would have been done
        self._seen: dict[MuriJob, tuple[float, float]] = {}  # iterations left and fair share at the event before

    def arrive(self, job: MuriJob) -> None:
        self._listed.append(job)
        self._isolated[job] = 0.0

    def end(self, job: MuriJob) -> None:
        self._listed.remove(job)

    def look_again(self, now: float) -> float:
        return math.inf

    def decide(self, now: float) -> list[MuriGroup]:
        jobs = self._listed
        if not jobs:
            return []
        fair = math.ceil(self._devices / len(jobs))
        for job in jobs:
            if job in self._seen:
                left, share = self._seen[job]
                self._isolated[job] += (left - job.left) / share
            self._seen[job] = job.left, min(1.0, fair / job.gpus)
        waited = np.array([now - job.submit for job in jobs])
        alone = np.array([job.alone for job in jobs])
        isolated = np.array([self._isolated[job] + job.left / self._seen[job][1] for job in jobs])
        shares = least_shares(waited, alone, isolated, np.array([float(job.gpus) for job in jobs]), float(self._devices))
        turn = {job: part / job.ran if job.ran > 0.0 else part * _NEVER_RAN for job, part in zip(jobs, shares.tolist(), strict=True)}
        jobs.sort(key=lambda job: -turn[job])
        return admit(jobs, self._devices)


def least_shares(waited: Floats, alone: Floats, isolated: Floats, gpus: Floats, devices: float) -> Floats:
    """The least shares (0 to 1) under which the worst of (waited + alone / share) / isolated is as small as it can be."""
    shares = np.empty(len(waited))
    _find_least(waited, alone, isolated, gpus, devices, shares)
    return shares


@kernel
def _find_least(waited: Floats, alone: Floats, isolated: Floats, gpus: Floats, devices: float, shares: Floats) -> None:
    low = 0.0
    for k in range(waited.shape[0]):
        low = max(low, (waited[k] + alone[k]) / isolated[k])
    if _write_shares(waited, alone, isolated, gpus, low, shares) <= devices:
        return
    high = 2.0 * low
    while _write_shares(waited, alone, isolated, gpus, high, shares) > devices:
        high *= 2.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        if _write_shares(waited, alone, isolated, gpus, middle, shares) <= devices:
            high = middle
        else:
            low = middle
        if high - low <= 1e-12 * high:
            break
    _write_shares(waited, alone, isolated, gpus, high, shares)


@kernel
def _write_shares(waited: Floats, alone: Floats, isolated: Floats, gpus: Floats, worst: float, shares: Floats) -> float:
    """The shares with which no job is worse off than that. How many devices they take."""
    taken = 0.0
    for k in range(waited.shape[0]):
        shares[k] = alone[k] / max(worst * isolated[k] - waited[k], alone[k])
        taken += gpus[k] * shares[k]
    return taken
