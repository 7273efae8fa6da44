"""AlloX as Gavel defines it: waiting jobs and free devices are matched so that the sum of completion times is smallest.

A job in the k-th place from the end of a device's queue delays k jobs, itself included, so it costs k times its run time
there (AlloX, EuroSys 2020, section 4). Jobs that hold a device keep it to the end. Single-device jobs only.
"""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
from scipy.optimize import linear_sum_assignment

from gantline.core.errors import UsageError
from gantline.systems.gavel.policies.allocation import Allocation
from gantline.systems.gavel.policies.instance import Instance
from gantline.systems.gavel.policies.shares import no_pairs


class MatchingMemory(TypedDict):
    """Which job holds a device of which type: lists of [job, type]."""

    held: list[list[Any]]


def allox(instance: Instance, memory: MatchingMemory | None = None, *, alpha: float = 1.0) -> tuple[Allocation, MatchingMemory]:
    """Whole devices for the jobs that run now. ``alpha`` limits the matching to the oldest part of the waiting jobs."""
    steps, elapsed = instance.needing("steps", "elapsed")
    if (instance.scale != 1).any():
        job = instance.jobs[int(np.argmax(instance.scale != 1))]
        raise UsageError("AlloX places single-device jobs only", where=f"job '{job}'", fix="use a policy that knows gangs")
    held = dict(memory["held"]) if memory else {}
    share = np.zeros((len(instance), len(instance.types)))
    free = instance.capacity.astype(np.int64)
    waiting = []
    for i, job in enumerate(instance.jobs):
        type = instance.types.index(str(held[job])) if held.get(job) in instance.types else -1
        if type >= 0 and free[type] > 0:
            share[i, type] = 1.0
            free[type] -= 1
        else:
            waiting.append(i)
    devices = np.repeat(np.arange(len(free)), free)
    waiting.sort(key=lambda i: -elapsed[i])
    waiting = waiting[: max(int(alpha * len(waiting)), len(devices))]
    if waiting and len(devices):
        speed = instance.throughput[waiting][:, devices]
        run = steps[waiting][:, None] / np.where(speed > 0, speed, 1e-10)
        places = np.arange(1, len(waiting) + 1)
        # Column (k - 1) * n + g: device g, k-th place from the end.
        cost = (places[None, :, None] * run[:, None, :]).reshape(len(waiting), -1) + elapsed[waiting][:, None]
        rows, columns = linear_sum_assignment(cost)
        runs_now: dict[int, tuple[int, int]] = {}
        for row, column in zip(rows, columns):
            place, device = divmod(int(column), len(devices))
            if place >= runs_now.get(device, (-1, -1))[0]:
                runs_now[device] = (place, int(row))
        for device, (_, row) in runs_now.items():
            share[waiting[row], devices[device]] = 1.0
    now: list[list[Any]] = [[instance.jobs[i], instance.types[int(share[i].argmax())]] for i in np.flatnonzero(share.any(axis=1))]
    return Allocation(share, no_pairs(instance)), MatchingMemory(held=now)
