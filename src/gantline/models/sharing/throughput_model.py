"""Speeds of the jobs of one run from a table of measured throughputs: alone, next to another job, within or across nodes.

A job's speed depends on its type, its gang size and the device type (Gavel, OSDI 2020, section 3.1). A table speaks of
steps per second, the engine of work per second: ``unit`` is the number of steps in a unit of a job's work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError
from gantline.core.rng import stream
from gantline.models.model import Gang, PerformanceModel
from gantline.models.sharing.matrix_completion import EstimationError, Profiling, estimate_pairs, estimation_error
from gantline.models.sharing.throughput_table import ThroughputTable


@dataclass(frozen=True)
class ThroughputModel(PerformanceModel):
    """Which row of the table each job is, and how many steps a unit of its work has."""

    about_gangs: ClassVar[bool] = False  # speeds alone are those of the options

    table: ThroughputTable
    types: tuple[str, ...]  # device types of the cluster, in the order of their codes
    place: Mapping[str, int]  # job -> its position in the columns
    key: Ints
    unit: Floats
    across: bool = False  # whether gangs that span nodes have speeds of their own
    _estimates: dict[object, tuple[ThroughputTable, Floats]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        table: ThroughputTable,
        types: Sequence[str],
        jobs: Sequence[str],
        names: Sequence[tuple[str, int]],
        steps: Floats,
        work: Floats,
        *,
        across: bool = False,
    ) -> ThroughputModel:
        """A model of these jobs, each of a type and gang size that the table must know, with its steps and its work."""
        rows = {name: table.key(*name) for name in dict.fromkeys(names)}
        key = np.array([rows[name] for name in names], dtype=np.int64)
        return cls(table, tuple(types), {job: i for i, job in enumerate(jobs)}, key, steps / work, across)

    def rows(self, jobs: Sequence[str]) -> Ints:
        """Positions of these jobs."""
        try:
            return np.array([self.place[job] for job in jobs], dtype=np.int64)
        except KeyError as error:
            raise NotFoundError(f"job {error} is not in the throughput model", where=self.table.source) from None

    @cached_property
    def alone(self) -> Floats:
        """Steps per second [key, type] within a node; NaN where unknown."""
        return self._on_cluster(self.table.packed.alone)

    @cached_property
    def alone_across(self) -> Floats:
        """Steps per second [key, type] of gangs that span nodes."""
        return self._on_cluster(self.table.spread.alone)

    @cached_property
    def paired(self) -> Floats:
        """Own steps per second [key, other key, type] next to another; NaN where unknown."""
        return self._on_cluster(self.table.packed.paired)

    @cached_property
    def paired_across(self) -> Floats:
        """The same of gangs that span nodes."""
        return self._on_cluster(self.table.spread.paired)

    def believed(self, profiling: Profiling, seed: int) -> Floats:
        """The same as an estimator sees it that has profiled only some pairs; equal arguments give equal numbers."""
        return self._profiled(profiling, seed)[1]

    def estimation_error(self, profiling: Profiling, seed: int) -> EstimationError:
        """How far that is from the truth, before any pair has run."""
        return estimation_error(self._profiled(profiling, seed)[0], self.table)

    def _profiled(self, profiling: Profiling, seed: int) -> tuple[ThroughputTable, Floats]:
        known = (profiling, seed)
        if known not in self._estimates:
            guess = estimate_pairs(self.table, profiling, stream(seed, 0, "gavel/profiling")).table
            self._estimates[known] = guess, self._on_cluster(guess.packed.paired)
        return self._estimates[known]

    def refuse_unknown_pairs(self, jobs: Ints) -> None:
        """Refuse if two of these jobs, of equal gang size, were never measured together on some type."""
        keys = np.unique(self.key[jobs])
        size = np.array([self.table.keys[k][1] for k in keys])
        speeds = self.paired[np.ix_(keys, keys)]
        gap = np.isnan(speeds) & (size[:, None] == size[None, :])[:, :, None]
        if gap.any():
            a, b, j = np.argwhere(gap)[0]
            raise NotFoundError(
                f"no throughput of {self.table.keys[keys[a]]} next to {self.table.keys[keys[b]]} on '{self.types[j]}'",
                where=self.table.source,
                fix="measure it, or let it be estimated (--set profiling=0.5)",
            )

    # --- what the engine asks ---------------------------------------------------------------------------------------
    def rate(self, job: str, type: int, gpus: int) -> float:
        """Work per second of a job on another type or with another gang size."""
        at = self.place[job]
        name = self.table.keys[self.key[at]][0]
        speed = float(self.alone[self.table.key(name, gpus), type])
        if np.isnan(speed):
            raise NotFoundError(f"no throughput of '{name}' with {gpus} devices on '{self.types[type]}'", where=self.table.source)
        return speed / float(self.unit[at])

    def granted(self, gang: Gang) -> float | None:
        """Work per second of a job next to the others of its group; pairs are all that a table knows."""
        if not gang.mates:
            return None
        at = self.place[gang.job]
        speeds = self.paired_across if self.across and gang.nodes > 1 else self.paired
        slowest = min(float(speeds[self.key[at], self.key[self.place[mate.job]], gang.type]) for mate in gang.mates)
        return 0.0 if np.isnan(slowest) else slowest / float(self.unit[at])

    def _on_cluster(self, speeds: Floats) -> Floats:
        """A table's numbers with one column per type of the cluster."""
        found = np.full((*speeds.shape[:-1], len(self.types)), np.nan)
        known = {name.lower(): column for column, name in enumerate(self.table.types)}
        for j, name in enumerate(self.types):
            if name.lower() in known:
                found[..., j] = speeds[..., known[name.lower()]]
        return found


def measured(speeds: Floats, truth: Floats, runs: Sequence[tuple[int, int, int]]) -> Floats:
    """Estimated speeds of pairs, with the truth where a pair (key, other key, type) has run since."""
    if not len(runs):
        return speeds
    found = speeds.copy()
    for a, b, j in runs:
        found[a, b, j], found[b, a, j] = truth[a, b, j], truth[b, a, j]
    return found
