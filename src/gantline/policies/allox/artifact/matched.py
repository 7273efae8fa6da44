"""IRFsim's AlloX, event by event."""

from __future__ import annotations

import numpy as np

from gantline.policies.allox.artifact import world
from gantline.policies.allox.artifact.clock import advance
from gantline.policies.allox.artifact.event import Cluster, allox
from gantline.policies.allox.artifact.queued import Queued
from gantline.policies.allox.artifact.world import CPU, GPU
from gantline.policies.allox.users import progress_gains
from gantline.policies.allox.ways import Floats, Ints


def needs(w: world.World, tasks: Ints) -> Floats:
    """Cores, GPUs and memory of tasks on either device."""
    need = np.zeros((len(tasks), 2, 3))
    for device in (CPU, GPU):
        need[:, device, device] = w.tasks[world.UNITS + device, tasks]
        need[:, device, world.MEMORY] = w.tasks[world.NEEDS_MEMORY + device, tasks]
    return need


def gains(w: world.World) -> Floats:
    """What each job adds to its user's score on either device, by true times."""
    true = w.tasks[world.TRUE : world.TRUE + 2, : w.jobs].T
    return progress_gains(true, needs(w, np.arange(w.jobs)), w.pool[world.CAPACITY : world.CAPACITY + 3])


def queued_jobs(w: world.World, number: Ints) -> tuple[Queued, Ints]:
    """The full jobs that wait, user by user in queue order."""
    queue = w.lists[world.QUEUE]
    queues = [queue[first : first + count] for first, count in w.queues.T.tolist()]
    tasks = np.concatenate(queues) if queues else np.empty(0, dtype=np.int64)
    tasks = tasks[w.codes[world.SAMPLE, tasks] < 0]
    reported = w.tasks[world.REPORTED : world.REPORTED + 2, tasks].T
    return Queued(number[tasks], w.codes[world.OWNER, tasks], w.tasks[world.ARRIVAL, tasks], reported, needs(w, tasks)), tasks


def run_allox(w: world.World, number: Ints, kind: Ints, gain: Floats, alpha: float) -> None:
    """The whole run; ``kind`` says which machines are GPUs."""
    while True:
        goes_on = advance(w)
        now = float(w.pool[world.NOW])
        if now == np.inf:
            return
        queued, tasks = queued_jobs(w, number)
        if not goes_on or not len(tasks):
            continue
        running = w.codes[world.SAMPLE, w.lists[world.RUNS, : w.counts[world.RUNNING]]]
        samples = (int((running == CPU).sum()), int((running == GPU).sum()))
        cluster = Cluster(kind, w.booked, samples, w.pool[world.FREE : world.FREE + 3])
        starts, booked, _ = allox(queued, cluster, w.users[world.SCORE], gain[tasks], now, alpha)
        for one in starts:
            world.start(w, tasks[one.row], one.device, tasks[one.row])
            w.codes[world.MACHINE, tasks[one.row]] = one.machine
        w.booked[:] = booked
