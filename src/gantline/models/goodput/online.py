"""Jobs whose batch adapts, on the engine: they go as was measured, and policies know what was fitted to what they have shown so far.

What happens is looked up in measured tables for the very shape that a gang has; it holds until the epoch ends, where gradient noise
and with it the worth of a batch change. What is believed is a speed model per job and device type, fitted to the rows (nodes, devices,
local batch, seconds) that the job has run with. Jobs choose their batch by what they believe, and policies their sizes (Pollux, OSDI
2021, section 4; Sia, SOSP 2023, section 3.2). The rows are all that is learned; models follow from them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.models.goodput.batch import BatchLimits, best_batch, gain, goodput_curve, split_batch
from gantline.models.goodput.fit import fit
from gantline.models.goodput.measured import Application, Pipeline, Shape, StepTimes, packed_shape
from gantline.models.goodput.speed_model import BATCH, LOG_STEP, NODES, REPLICAS, Observations, step_time
from gantline.models.model import Gang, Gangs, Observed, PerformanceModel

_KEPT_JOBS = 5000
_ELSEWHERE = (1, 2, 4, 8, 16)  # replicas at which beliefs are compared with the truth

Row = tuple[float, ...]  # nodes, replicas, local batch, log of the seconds without averaging, log of those with


class OnlineJob(NamedTuple):
    """What a job trains, how much work all of its progress stands for, and its total batch if that stays (0: it adapts)."""

    app: Application
    work: float
    batch: float = 0.0
    pipelines: Mapping[str, Pipeline] = {}  # by device type, if a replica is a pipeline; else every device is a replica

    def times(self, kind: str) -> StepTimes | Pipeline:
        """What was measured on a device type."""
        return self.pipelines[kind] if self.pipelines else self.app.on(kind)

    def unit(self, kind: str) -> int:
        """Devices of one replica."""
        return self.pipelines[kind].stages if self.pipelines else 1

    def limits(self, kind: str) -> BatchLimits:
        """The batches that it may use on a device type."""
        training, times = self.app.training, self.times(kind)
        return BatchLimits(training.base, training.most, times.local_least, times.local_most, accumulates=not self.pipelines)

    def first_batch(self, kind: str, replicas: int) -> tuple[int, int]:
        """Local batch and accumulation before anything is known of its speed, or for good where the batch stays."""
        limits = self.limits(kind)
        return split_batch(self.batch or max(limits.base, limits.local_least * replicas), replicas, limits)

    def seconds(self, kind: str, gpus: int, per_node: int) -> float:
        """Seconds of all epochs on so many devices, packed, at the first batch."""
        training, replicas = self.app.training, gpus // self.unit(kind)
        local, steps = self.first_batch(kind, replicas)
        step, sync = self.times(kind).seconds(packed_shape(gpus, per_node), local)
        total, spent, before = replicas * local * (steps + 1), 0.0, 0.0
        for epoch, edge in enumerate(training.edges.tolist()):
            spent += (edge - before) * (step + steps * (step - sync)) / gain(*training.noise(total, epoch), total / training.base)
            before = edge
        return spent

    def most(self, kind: str) -> int:
        """The most devices that its batches are enough for."""
        return int((self.batch or self.app.training.most) // self.limits(kind).local_least) * self.unit(kind)

    def epoch(self, done: float) -> int:
        """The epoch being trained when so much work is done."""
        edges = self.app.training.edges
        return min(int(np.searchsorted(edges, done / self.work * edges[-1] * (1.0 + 1e-12), side="right")), len(edges) - 1)


class Segment(NamedTuple):
    """How a job trains on a shape: replicas, local batch, accumulation, seconds of a step and of averaging, and all rows it has shown."""

    replicas: int
    local: int
    steps: int
    step: float
    sync: float
    seen: tuple[Row, ...]

    @property
    def total(self) -> int:
        """The whole batch."""
        return self.replicas * self.local * (self.steps + 1)


@lru_cache(maxsize=8192)
def _fitted(rows: tuple[Row, ...]) -> Floats:
    """The parameters that fit rows best; equal rows have equal models."""
    return fit(Observations(np.array(rows))).parameters


@dataclass(frozen=True)
class OnlineGoodput(PerformanceModel):
    """Truth from profiles, beliefs from what jobs have shown; ``interval`` is how often jobs choose their batch anew within an epoch.

    Without ``learns`` all batches stay, and policies know the measured speeds of packed gangs.
    """

    jobs: Mapping[str, OnlineJob]
    types: tuple[str, ...]  # of the cluster, by code
    node: tuple[int, ...]  # devices of a node of each type
    interval: float = 0.0
    learns: bool = True
    _rates: dict[tuple[str, int, int], float] = field(default_factory=dict, repr=False, compare=False)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        """As measured, until the epoch ends or the batch is chosen anew."""
        rate, until = gangs.divided.copy(), np.full(len(gangs), np.inf)
        for at in range(len(gangs)):
            gang = gangs[at]
            job = self.jobs.get(gang.job)
            if job is None or gang.gpus == 0:
                continue
            epoch, training = job.epoch(gang.done), job.app.training
            now = self._segment(job, gang, epoch)
            progress = gain(*training.noise(now.total, epoch), now.total / training.base) / (now.step + now.steps * (now.step - now.sync))
            rate[at] = progress * job.work / training.edges[-1]
            if epoch + 1 < training.epochs:
                until[at] = gang.since + (training.edges[epoch] / training.edges[-1] * job.work - gang.done) / rate[at]
            if self.interval > 0.0:
                until[at] = min(until[at], gang.since + self.interval)
        return rate, until

    def rate(self, job: str, type: int, gpus: int) -> float | None:
        """Measured speed of a packed gang whose batch stays; 0 where the batch is too small or half a pipeline would be left over."""
        found = self.jobs.get(job)
        if found is None or self.learns:
            return None
        if (job, type, gpus) not in self._rates:
            kind = self.types[type]
            fits = found.app.runs_on(kind) and 0 < gpus <= found.most(kind) and gpus % found.unit(kind) == 0
            self._rates[job, type, gpus] = found.work / found.seconds(kind, gpus, self.node[type]) if fits else 0.0
        return self._rates[job, type, gpus]

    def observe(self, gangs: Gangs) -> Observed | None:
        """The rows that working jobs have shown, and the gradient noise at their batch."""
        if not self.learns:
            return None
        known: dict[str, Any] = dict(gangs.learned or {})
        for at in range(len(gangs)):
            gang = gangs[at]
            job = self.jobs.get(gang.job)
            if job is None or gang.gpus == 0 or gang.since > gang.now:
                continue
            epoch, kind = job.epoch(gang.done), self.types[gang.type]
            now = self._segment(job, gang, epoch)
            before = known.pop(gang.job, {"seen": {}})
            seen = before["seen"] | {kind: [list(row) for row in now.seen]}
            known[gang.job] = {"seen": seen, "batch": float(now.total), "noise": list(job.app.training.noise(now.total, epoch))}
        return Observed(learned=dict(list(known.items())[-_KEPT_JOBS:]))

    def _segment(self, job: OnlineJob, gang: Gang, epoch: int) -> Segment:
        """What a job does where it is: it learns its speed in the first steps, and takes the batch that then seems best."""
        kind, shape = self.types[gang.type], _shape(gang)
        tried: Mapping[str, Any] = (gang.learned or {}).get(gang.job, {})
        seen = tuple(tuple(row) for row in tried.get("seen", {}).get(kind, ()))
        limits, times, replicas = job.limits(kind), job.times(kind), max(gang.gpus // job.unit(kind), 1)
        local, steps = job.first_batch(kind, replicas)
        if self.learns and not job.batch:
            seen = seen or (_row(times, shape, replicas, local),)
            noise = job.app.training.noise(tried.get("batch", limits.base), epoch)
            best = best_batch(_fitted(seen), *noise, len(shape), replicas, limits)
            if best.goodput > 0.0:
                local, steps = min(best.local, int(limits.most // (replicas * (best.accumulation + 1)))), best.accumulation
        row = _row(times, shape, replicas, local)
        if not any(row[:3] == old[:3] for old in seen):
            seen = (*seen, row)
        return Segment(replicas, local, steps, *times.seconds(shape, local), seen)

    # --- what policies may know --------------------------------------------------------------------------------------
    def goodputs(self, learned: Mapping[str, Any] | None, name: str, kind: int, sizes: Ints) -> Floats | None:
        """Believed examples a second, each at its worth [on one node or several, size]; None: the job has not run yet.

        A type that a job has not run on is judged by the first one it has, times how much faster one device is. A job is thought to be
        worth nothing on more than twice the devices it has ever had, so that it is tried step by step.
        """
        job, tried = self.jobs.get(name), (learned or {}).get(name)
        if job is None or not tried:
            return None
        found, own = np.zeros((2, len(sizes))), self.types[kind]
        source = own if own in tried["seen"] else next(one for one in self.types if one in tried["seen"])
        if not job.app.runs_on(own):
            return found
        most, replicas = max(2 * int(row[REPLICAS]) for rows in tried["seen"].values() for row in rows), sizes // job.unit(own)
        model = _fitted(tuple(tuple(row) for row in tried["seen"][source]))
        faster = 1.0 if source == own else job.times(own).single / job.times(source).single
        may = np.flatnonzero((replicas >= 1) & (replicas <= most))
        for nodes in (1, 2):
            found[nodes - 1, may] = faster * _curve(job, source, model, tried["noise"], nodes, replicas[may])
        return found

    def belief_errors(self, learned: Mapping[str, Any] | None) -> dict[str, Any]:
        """Mean relative error of step times, as the last models see them: where a job has been, and on 1 to 16 devices, packed."""
        there, elsewhere, models = [], [], 0
        for name, tried in (learned or {}).items():
            for kind, rows in tried["seen"].items():
                model, job = _fitted(tuple(tuple(row) for row in rows)), self.jobs[name]
                models += 1
                there += [abs(_seconds(model, row) / math.exp(row[LOG_STEP]) - 1.0) for row in rows]
                local = int(rows[-1][BATCH])
                for replicas in _ELSEWHERE:
                    shape = packed_shape(replicas * job.unit(kind), self.node[self.types.index(kind)])
                    believed = step_time(model, len(shape), replicas, float(local), 0)
                    elsewhere.append(abs(believed / job.times(kind).seconds(shape, local)[0] - 1.0))
        means = {"belief_error_seen": there, "belief_error_elsewhere": elsewhere}
        return {"estimates": "fitted", "models": models} | {name: float(np.mean(each)) if each else None for name, each in means.items()}


def _shape(gang: Gang) -> Shape:
    """Devices per node, by the devices of the grant or, where it names none, as evenly as they can be."""
    if gang.grant is not None and gang.grant.devices:
        nodes = Counter(gang.cluster.device_node[list(gang.grant.devices)].tolist())
        return tuple(nodes[node] for node in sorted(nodes))
    each, more = divmod(gang.gpus, max(gang.nodes, 1))
    return tuple(each + (place < more) for place in range(max(gang.nodes, 1)) if each + (place < more))


def _row(times: StepTimes | Pipeline, shape: Shape, replicas: int, local: int) -> Row:
    step, sync = times.seconds(shape, local)
    return (float(len(shape)), float(replicas), float(local), math.log(step - sync), math.log(step))


def _seconds(model: Floats, row: Row) -> float:
    return float(step_time(model, int(row[NODES]), int(row[REPLICAS]), row[BATCH], 0))


def _curve(job: OnlineJob, kind: str, model: Floats, noise: list[float], nodes: int, sizes: Ints) -> Floats:
    """Believed goodput at each size, by the best batch or the one that stays."""
    limits = job.limits(kind)
    if not job.batch:
        out = np.zeros(len(sizes) + 3)
        goodput_curve(model, noise[0], noise[1], nodes, sizes, limits.row(), out)
        return out[: len(sizes)]
    found = np.zeros(len(sizes))
    for at, replicas in enumerate(sizes.tolist()):
        local, steps = split_batch(job.batch, replicas, limits)
        worth = limits.base * gain(noise[0], noise[1], replicas * local * (steps + 1) / limits.base)
        found[at] = worth / step_time(model, nodes, replicas, float(local), steps) if local >= limits.local_least else 0.0
    return found
