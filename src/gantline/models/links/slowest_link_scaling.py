"""Scaling curves made of the times in a training step: how fast a job is by GPUs, nodes and batch size.

A step of batch b on g GPUs takes

    fixed + sample * ceil(b / g) + 2 (g - 1) / g * (within, or across when the gang spans nodes)

seconds: what every step costs, the samples of one GPU, and a ring all-reduce of the gradients inside a node or over the network
(Patarasuk and Yuan, JPDC 2009). A ring is as fast as its slowest link: where the cluster has bandwidths (``links:300/25/6``), `across`
speaks of nodes of one rack and grows as the slowest link between the gang's nodes is slower than that; and a job may say the GB of its
`gradients` in place of both times. The job's work counts samples, so that its speed is b over that. This is the batch knob of FfDL (Saxena
et al., MASCOTS 2020): a larger batch pays `fixed` and the exchange less often per sample, within the user's range and a GPU's memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.cluster import Bandwidths, Cluster
from gantline.core.errors import UsageError, near
from gantline.core.topology import slowest_link
from gantline.models.model import Gangs, PerformanceModel


@dataclass(frozen=True, slots=True)
class Scaling:
    """Seconds that steps are made of, and batch sizes in samples; `local` is what fits on one GPU (0: no matter)."""

    fixed: float = 0.0
    sample: float = 0.0
    within: float = 0.0
    across: float = 0.0
    batch: int = 1  # the job's own
    least_batch: int = 1
    most_batch: int = 1
    local: int = 0
    gradients: float = 0.0  # GB that every step exchanges, in place of `within` and `across`

    def __post_init__(self) -> None:
        for name in ("fixed", "sample", "within", "across", "gradients"):
            if not 0.0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"{name} is {getattr(self, name)}", where="scaling", fix="seconds (gradients: GB), zero or more")
        if not self.fixed + self.sample > 0.0:
            raise UsageError("a step takes no time", where="scaling", fix="give seconds for fixed or sample")
        if not 1 <= self.least_batch <= self.batch <= self.most_batch:
            text = f"batch {self.batch} is not within {self.least_batch}-{self.most_batch}"
            raise UsageError(text, where="scaling", fix="batch=LOW-HIGH around the job's own batch size")
        if self.gradients and (self.within or self.across):
            raise UsageError("gradients beside within or across", where="scaling", fix="give the GB, or the seconds that they take")
        if self.local < 0:
            raise UsageError(f"local is {self.local}", where="scaling", fix="samples that fit on one GPU, or 0")

    @staticmethod
    def parse(text: str, own_batch: int | None = None) -> Scaling:
        """From ``fixed=0.02;sample=0.001;within=0.05;across=0.3;batch=32-512;local=128``; `own_batch` is the job's batch size."""
        known = ("fixed", "sample", "within", "across", "gradients", "batch", "local")
        values: dict[str, Any] = {}
        low = high = own_batch
        for part in text.split(";"):
            name, sign, amount = (piece.strip() for piece in part.partition("="))
            if name not in known or not sign:
                raise UsageError(f"there is no '{part.strip()}'", where="scaling", fix=near(name, known))
            try:
                if name == "batch":
                    first, _, last = amount.partition("-")
                    low, high = int(first), int(last or first)
                else:
                    values[name] = int(amount) if name == "local" else float(amount)
            except ValueError:
                raise UsageError(
                    f"'{part.strip()}' is not a number", where="scaling", fix="for instance sample=0.001;batch=32-512"
                ) from None
        low, high = low or 1, high or 1
        return Scaling(**values, batch=low if own_batch is None else own_batch, least_batch=low, most_batch=high)

    def __str__(self) -> str:
        times = ("fixed", "sample", "within", "across", "gradients")
        lines = [f"{name}={getattr(self, name):g}" for name in times if getattr(self, name)]
        return ";".join([*lines, f"batch={self.least_batch}-{self.most_batch}", *([f"local={self.local}"] if self.local else [])])

    def fits(self, gpus: int, batch: int) -> bool:
        """Whether a batch can be spread over so many GPUs: a sample for each, and no more than fit."""
        return gpus <= batch and (not self.local or -(-batch // gpus) <= self.local)

    def on(self, bandwidths: Bandwidths) -> Scaling:
        """The same in seconds, for links of such bandwidths."""
        if not self.gradients:
            return self
        if not bandwidths.known:
            raise UsageError("gradients in GB, and no bandwidths", where="scaling", fix="add links to --cluster: 8x4@4/rack,links:300/25/6")
        return replace(self, gradients=0.0, within=self.gradients / bandwidths.node, across=self.gradients / bandwidths.rack)

    def step(self, gpus: int, nodes: int, batch: int, far: float = 1.0) -> float:
        """Seconds of one step; `far`: how many times slower than in a rack the slowest link between its nodes is."""
        exchange = self.within if nodes <= 1 else self.across * far
        return self.fixed + self.sample * -(-batch // gpus) + 2.0 * (gpus - 1) / gpus * exchange

    def speed(self, gpus: int, nodes: int, batch: int = 0, far: float = 1.0) -> float:
        """Samples per second, of the job's own batch unless given; zero where that does not fit."""
        batch = batch or self.batch
        return batch / self.step(gpus, nodes, batch, far) if self.fits(gpus, batch) else 0.0

    def best_batches(self, gpus: Ints, nodes: Ints, far: Floats | float = 1.0) -> tuple[Ints, Floats]:
        """Per number of GPUs the fastest batch size and its samples per second; the smaller of two equally fast ones; 0: none fits.

        Samples per second rise with the samples of each GPU, and for given ones with the batch: so the best batch is the largest that may
        be, or the largest that all GPUs share evenly.
        """
        most = np.minimum(self.most_batch, self.local * gpus) if self.local else np.full(len(gpus), self.most_batch, dtype=np.int64)
        even = most - most % gpus
        exchange = self.fixed + 2.0 * (gpus - 1) / gpus * np.where(nodes <= 1, self.within, self.across * far)
        fast = [
            np.where(size >= np.maximum(self.least_batch, gpus), size / (exchange + self.sample * -(-size // gpus)), 0.0)
            for size in (even, most)
        ]
        speed = np.maximum(*fast)
        return np.where(speed > 0.0, np.where(fast[0] >= fast[1], even, most), 0), speed


@dataclass(frozen=True)
class ScalingModel(PerformanceModel):
    """The curves of a run's jobs, by name; `unit`: samples per second at speed one, `node` and `rack`: GPUs of the largest, by type.

    Speeds of sizes that were not listed (`rate`) are those on as few nodes and racks as possible with the job's own batch; gangs that run
    go at the speed of the slowest link between their nodes and the batch they were given. Jobs without a curve have the speeds of their
    options.
    """

    curves: Mapping[str, Scaling]
    unit: Mapping[str, float]
    node: tuple[int, ...]
    rack: tuple[int, ...] = ()  # none: racks do not matter
    far: float = 1.0  # how many times slower links between racks are than links in a rack
    _made: dict[tuple[str, int, bool], Any] = field(default_factory=dict, init=False, repr=False, compare=False)  # curves asked for before

    @staticmethod
    def on(jobs: Sequence[str], curves: Sequence[Scaling | None], gpus: Sequence[int], cluster: Cluster) -> ScalingModel:
        """The model for a cluster, with its links."""
        by_type = [[node for node in cluster.nodes if node.type == name] for name in cluster.types]
        node = [max((one.gpus for one in nodes), default=1) for nodes in by_type]
        speeds = cluster.bandwidths
        curves = [None if curve is None else curve.on(speeds) for curve in curves]
        if not speeds.known:
            return ScalingModel.of(jobs, curves, gpus, node)
        rack = [max(sum(one.gpus for one in nodes if one.rack == name) for name in {one.rack for one in nodes}) for nodes in by_type]
        return ScalingModel.of(jobs, curves, gpus, node, rack, speeds.rack / speeds.cluster)

    @staticmethod
    def of(
        jobs: Sequence[str],
        curves: Sequence[Scaling | None],
        gpus: Sequence[int],
        node: Sequence[int],
        rack: Sequence[int] = (),
        far: float = 1.0,
    ) -> ScalingModel:
        """The model in which a job on the GPUs that it asks for, on as few of the largest nodes and racks as possible, has speed one."""
        sizes, racks = (tuple(max(int(size), 1) for size in many) for many in (node, rack))
        known, unit = {}, {}
        for job, curve, asked in zip(jobs, curves, gpus):
            if curve is None:
                continue
            leaves = bool(racks) and int(asked) > max(racks)
            known[job], unit[job] = curve, curve.speed(int(asked), -(-int(asked) // max(sizes, default=1)), far=far if leaves else 1.0)
            if not unit[job] > 0.0:
                each = f"{curve.local} fit on one" if curve.local else "each needs a sample"
                text = f"job '{job}': a batch of {curve.batch} does not fit on the {asked} GPUs it asks for ({each})"
                raise UsageError(text, where="scaling", fix="ask for another number of GPUs, or change batch_size or local")
        return ScalingModel(known, unit, sizes, racks, far)

    def _nodes(self, type: int, gpus: int) -> int:
        return -(-gpus // self.node[type])

    def _far(self, type: int, gpus: int) -> float:
        return self.far if self.rack and gpus > self.rack[type] else 1.0

    def _crossed(self, cluster: Cluster, nodes: Sequence[int]) -> float:
        """How many times slower than in a rack the slowest link between these nodes is."""
        slowest = slowest_link(cluster, nodes) if cluster.bandwidths.known else 0.0
        return cluster.bandwidths.rack / slowest if slowest > 0.0 else 1.0

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        rate, always = gangs.divided.copy(), np.full(len(gangs), np.inf)
        for at, job in enumerate(gangs.jobs):
            curve, grant = self.curves.get(job), gangs.grants[at]
            if curve is not None and (grant is None or not (grant.shared or grant.fluid or grant.workers)):
                batch = 0 if grant is None else grant.assignment.batch
                far = self._crossed(gangs.cluster, gangs.places(at)) if gangs.nodes[at] > 1 else 1.0
                rate[at] = curve.speed(int(gangs.gpus[at]), int(gangs.nodes[at]), batch, far) / self.unit[job]
        return rate, always

    def rate_on(self, job: str, type: int, gpus: int, nodes: Sequence[int], cluster: Cluster) -> float | None:
        curve = self.curves.get(job)
        return None if curve is None else curve.speed(gpus, len(nodes), 0, self._crossed(cluster, nodes)) / self.unit[job]

    def rate(self, job: str, type: int, gpus: int) -> float | None:
        curve = self.curves.get(job)
        if curve is None:
            return None
        made = self._made.get((job, type, False))
        if made is None or gpus >= len(made):
            sizes = range(1, _round_up(gpus) + 1)
            made = [0.0, *(curve.speed(size, self._nodes(type, size), 0, self._far(type, size)) / self.unit[job] for size in sizes)]
            self._made[job, type, False] = made
        return float(made[gpus])

    def best_batches(self, job: str, type: int, most: int) -> tuple[Ints, Floats] | None:
        """For 0, 1, ... at least `most` GPUs the fastest batch (0: none fits) and its work per second; None: it has no choice."""
        curve = self.curves.get(job)
        if curve is None or curve.least_batch == curve.most_batch:
            return None
        made: tuple[Ints, Floats] | None = self._made.get((job, type, True))
        if made is None or most >= len(made[0]):
            sizes = np.arange(1, _round_up(most) + 1)
            batch, speed = curve.best_batches(sizes, -(-sizes // self.node[type]), np.array([self._far(type, int(size)) for size in sizes]))
            made = (np.concatenate(([0], batch)), np.concatenate(([0.0], speed / self.unit[job])))
            self._made[job, type, True] = made
        return made


def _round_up(size: int) -> int:
    """The power of two from this size on, so that a curve is made again seldom."""
    return 1 << max(size - 1, 0).bit_length()
