"""IRFsim's AlloX, event by event."""

from __future__ import annotations

import numpy as np

from gantline.policies.allox.artifact.clock import advance
from gantline.policies.allox.artifact.event import Cluster, allox
from gantline.policies.allox.artifact.queued import Queued
from gantline.policies.allox.artifact.world import CPU, GPU, MEMORY, RUNNING, World, start
from gantline.policies.allox.users import progress_gains
from gantline.policies.allox.ways import Floats, Ints


def needs(w: World, tasks: Ints) -> Floats:
    """Cores, GPUs and memory of tasks on either device."""
    need = np.zeros((len(tasks), 2, 3))
    for device in (CPU, GPU):
        need[:, device, device] = w.units[tasks, device]
        need[:, device, MEMORY] = w.memory[tasks, device]
    return need


def gains(w: World) -> Floats:
    """What each job adds to its user's score on either device, by true times."""
    return progress_gains(w.true[: w.jobs], needs(w, np.arange(w.jobs)), w.capacity)


def queued_jobs(w: World, number: Ints) -> tuple[Queued, Ints]:
    """The full jobs that wait, user by user in queue order."""
    queues = [w.queue[first : first + count] for first, count in zip(w.offset.tolist(), w.length.tolist())]
    tasks = np.concatenate(queues) if queues else np.empty(0, dtype=np.int64)
    tasks = tasks[w.sample[tasks] < 0]
    return Queued(number[tasks], w.owner[tasks], w.arrival[tasks], w.reported[tasks], needs(w, tasks)), tasks


def run_allox(w: World, number: Ints, kind: Ints, gain: Floats, alpha: float) -> None:
    """The whole run; ``kind`` says which machines are GPUs."""
    while True:
        goes_on = advance(w)
        if w.clock[0] == np.inf:
            return
        queued, tasks = queued_jobs(w, number)
        if not goes_on or not len(tasks):
            continue
        running = w.sample[w.running[: w.counts[RUNNING]]]
        samples = (int((running == CPU).sum()), int((running == GPU).sum()))
        cluster = Cluster(kind, w.booked, samples, w.free)
        starts, booked, _ = allox(queued, cluster, w.score, gain[tasks], float(w.clock[0]), alpha)
        for one in starts:
            start(w, tasks[one.row], one.device, tasks[one.row])
            w.machine[tasks[one.row]] = one.machine
        w.booked[:] = booked
