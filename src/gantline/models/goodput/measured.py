"""What really happens: measured step times of an application, of its pipelines too, and the course of its training.

Times are looked up by shape, the devices per node in the order of the ring. A shape and its rotations are one: the
key is the least rotation (1,2,4 and 1,4,2 differ). A shape that was measured is linear in the local batch between its
rows and constant beyond them. One that was not is interpolated linearly over a Delaunay triangulation of all points
(nodes, replicas, local batch), as the simulators of Pollux and Sia do; outside of their hull the nearest point
counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, near
from gantline.models.goodput.triangulation import Triangulation

Shape = tuple[int, ...]

MOST_NODES: Final = 16  # what was measured for so many nodes stands for more
_MOST_SYNC: Final = 0.999  # of a step


def least_rotation(shape: Sequence[int]) -> Shape:
    """The rotation that comes first: (4, 1, 2) becomes (1, 2, 4)."""
    ring = tuple(shape)
    return min(ring[i:] + ring[:i] for i in range(len(ring))) if ring else ring


def packed_shape(replicas: int, per_node: int) -> Shape:
    """As few nodes as possible, whole ones first."""
    whole, rest = divmod(replicas, per_node)
    return (per_node,) * whole + ((rest,) if rest else ())


@dataclass(frozen=True)
class StepTimes:
    """Measured seconds of a step and of the averaging in it, on devices of one type.

    ``placements`` maps a least rotation to rows (local batch, step, sync) by ascending batch; ``scalability`` has rows
    (nodes, replicas, local batch, step, sync) in the order of their file, which the triangulation depends on.
    """

    placements: Mapping[Shape, Floats]
    scalability: Floats = field(default_factory=lambda: np.empty((0, 5)))
    source: str = ""

    @cached_property
    def local_least(self) -> float:
        return min(float(rows[0, 0]) for rows in self.placements.values())

    @cached_property
    def local_most(self) -> float:
        return max(float(rows[-1, 0]) for rows in self.placements.values())

    @cached_property
    def points(self) -> Floats:
        """All points (nodes, replicas, local batch, step, sync): placements averaged and in order, then scalability."""
        rows = [(len(shape), sum(shape), *row) for shape, rows in self.placements.items() for row in rows]
        table = np.array(rows, dtype=np.float64).reshape(-1, 5)
        place, group = np.unique(table[:, :3], axis=0, return_inverse=True)
        group = group.reshape(-1)
        count = np.bincount(group)
        means = [np.bincount(group, weights=table[:, column]) / count for column in (3, 4)]
        return np.concatenate((np.column_stack((place, *means)), self.scalability))

    @cached_property
    def _between(self) -> Triangulation | None:
        try:
            return Triangulation(self.points[:, :3], self.points[:, 3:])
        except ValueError:  # too few points, or all in one plane
            return None

    @cached_property
    def single(self) -> float:
        """Examples a second of one device: its largest batch over its longest step."""
        rows = self.placements.get((1,))
        if rows is None:
            return self.local_most / self.seconds((1,), self.local_most)[0]
        return float(rows[:, 0].max() / rows[:, 1].max())

    @cached_property
    def _looked_up(self) -> dict[tuple[Shape, float], tuple[float, float]]:
        return {}

    def seconds(self, shape: Shape, local: float) -> tuple[float, float]:
        """Seconds of a step and of averaging for one local batch, looked up once; something of a step is always left for computing."""
        found = self._looked_up.get((shape, local))
        if found is None:
            step, sync = (float(each[0]) for each in self.lookup(shape, local))
            found = self._looked_up[shape, local] = step, min(sync, _MOST_SYNC * step)
        return found

    def is_measured(self, shape: Sequence[int]) -> bool:
        return least_rotation(shape) in self.placements

    def lookup(self, shape: Sequence[int], batch: ArrayLike) -> tuple[Floats, Floats]:
        """Seconds of a step and of its averaging for local batches on a shape."""
        wanted = np.atleast_1d(np.asarray(batch, dtype=np.float64))
        rows = self.placements.get(least_rotation(shape))
        if rows is not None:
            return np.interp(wanted, rows[:, 0], rows[:, 1]), np.interp(wanted, rows[:, 0], rows[:, 2])
        found = np.empty((len(wanted), 2))
        for i, local in enumerate(wanted):
            at = np.array([min(len(shape), MOST_NODES), sum(shape), local])
            found[i] = np.nan if self._between is None else self._between.at(at)
            if np.isnan(found[i, 0]):
                found[i] = self.points[np.argmin(((self.points[:, :3] - at) ** 2).sum(axis=1)), 3:]
        return found[:, 0], found[:, 1]


@dataclass(frozen=True)
class Training:
    """The course of training at several total batches, epoch by epoch; matrices are [batch, epoch]."""

    batches: Floats  # ascending; the first is the one the application was written for
    progress: Floats  # steps at the first batch that all epochs so far were worth
    iteration: Floats  # steps really made
    square: Floats  # gradient statistics
    variance: Floats

    @property
    def base(self) -> float:
        return float(self.batches[0])

    @property
    def most(self) -> float:
        return float(self.batches[-1])

    @property
    def epochs(self) -> int:
        return int(self.progress.shape[1])

    @cached_property
    def edges(self) -> Floats:
        """Progress at which each epoch ends: the least over all batches, whatever batch is run."""
        least: Floats = self.progress.min(axis=0)
        return least

    def noise(self, batch: float, epoch: int) -> tuple[float, float]:
        """Square and variance of the gradient at a total batch while an epoch (from 0) is trained."""
        return (
            float(np.interp(batch, self.batches, self.square[:, epoch])),
            float(np.interp(batch, self.batches, self.variance[:, epoch])),
        )

    def iterations(self, batch: float, epoch: int) -> float:
        """Steps at a total batch up to the end of an epoch (from 0)."""
        return float(np.interp(batch, self.batches, self.iteration[:, epoch]))


@dataclass(frozen=True)
class Application:
    """A network that is trained: its course, and its speed per device type."""

    name: str
    training: Training
    times: Mapping[str, StepTimes]
    source: str = ""

    def on(self, kind: str) -> StepTimes:
        """The measured times on a device type; a set measured on one nameless type serves for all."""
        if kind in self.times:
            return self.times[kind]
        if "" in self.times:
            return self.times[""]
        raise NotFoundError(f"no profile of '{self.name}' on '{kind}'", where=self.source, fix=near(kind, self.times))

    def runs_on(self, kind: str) -> bool:
        return kind in self.times or "" in self.times


@dataclass(frozen=True)
class Profiles:
    """Applications by name."""

    applications: Mapping[str, Application]
    source: str = ""

    def __getitem__(self, name: str) -> Application:
        if name not in self.applications:
            raise NotFoundError(f"no profile of '{name}'", where=self.source, fix=near(name, self.applications))
        return self.applications[name]


# Hybrid parallel jobs: replicas of a pipeline, each on so many devices as it has stages (as in Sia, SOSP 2023).
#
# What was measured is the forward pass of one micro-batch through a stage, and the averaging over replicas. A step
# has a fixed number of micro-batches, each of which goes forward once and backward for about twice as long; stages
# fill and drain at its ends.

MICRO_BATCHES: Final = 48  # of one sample each: the only pipeline that was measured


@dataclass(frozen=True)
class Pipeline:
    """Seconds of a pipeline's steps on one device type; a replica always has the same local batch."""

    times: StepTimes
    stages: int
    local_least: float = float(MICRO_BATCHES)
    local_most: float = float(MICRO_BATCHES)
    _looked_up: dict[Shape, tuple[float, float]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def measured(cls, times: StepTimes, stages: int = 0) -> Pipeline:
        """With so many stages, or as many as the smallest placement that was measured has devices."""
        return cls(times, stages or min(map(sum, times.placements)))

    @property
    def single(self) -> float:
        """Examples a second of one replica, on as few nodes as were measured."""
        alone = min((shape for shape in self.times.placements if sum(shape) == self.stages), key=len, default=(self.stages,))
        return MICRO_BATCHES / self.seconds(alone, MICRO_BATCHES)[0]

    def seconds(self, shape: Shape, local: float) -> tuple[float, float]:
        """Seconds of a step and of averaging in it on so many devices per node."""
        found = self._looked_up.get(shape)
        if found is None:
            forward, sync = (float(each[0]) for each in self.times.lookup(shape, 1))
            step = 3.0 * (self.stages - 1 + MICRO_BATCHES) * forward + sync
            found = self._looked_up[shape] = step, min(sync, _MOST_SYNC * step)
        return found
