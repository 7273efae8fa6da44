"""What every job may be given, device type by device type, and the speeds believed of it there, estimated where none was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats
from gantline.core.phases import PENDING, RUNNING, STARTING
from gantline.core.snapshot import Snapshot
from gantline.policies.elastic.pools import read_curves

# Speeds that were not measured, from those that were: collaborative filtering over jobs, device types and counts.
#
# Logarithms of speeds, each job's relative to its own, are a mean, a number per job, type and count, and a sum of a few
# products of one factor each (a canonical polyadic model with biases; Funk's SVD is the form with two axes), fitted by
# alternating ridge regressions. A new job is known from a few cells; the others' rows say how jobs like it scale. Heet
# (ASPLOS 2024) estimates elastic configurations so; its formulas could not be read, these are ours.


_FIRST = 1e-3  # ridge of what needs none: biases, types and counts


@dataclass(frozen=True)
class ElasticFilter:
    """How the filter is fitted."""

    rank: int = 2
    ridge: float = 0.1
    sweeps: int = 20

    def complete(self, speed: Floats) -> Floats:
        """Speeds [job, type, count] with every gap (NaN, zero or less) filled; known cells stay as they are."""
        known = np.isfinite(speed) & (np.nan_to_num(speed) > 0.0)
        logs = np.where(known, np.log(np.where(known, speed, 1.0)), 0.0)
        count = known.sum(axis=(1, 2))
        own = np.where(count > 0, logs.sum(axis=(1, 2)) / np.maximum(count, 1), 0.0)
        own[count == 0] = own[count > 0].mean()
        centred = np.where(known, logs - own[:, None, None], 0.0)
        guess = own[:, None, None] + self._fit(centred, known)
        found: Floats = np.where(known, speed, np.exp(guess))
        return found

    def _fit(self, logs: Floats, known: NDArray[np.bool_]) -> Floats:
        """The model in every cell: each axis in turn is regressed on the two others."""
        mean = logs[known].mean()
        bias = [np.zeros(size) for size in logs.shape]
        factor = [np.zeros((logs.shape[0], self.rank)), *_start(logs.shape[1], logs.shape[2], self.rank)]
        typical, weight = np.zeros(self.rank), known.sum(axis=(1, 2)).astype(np.float64)
        for _ in range(self.sweeps):
            for axis in (0, 1, 2):
                one, two = (other for other in range(3) if other != axis)
                rest = mean + bias[one][:, None] + bias[two][None, :]
                product = (factor[one][:, None, :] * factor[two][None, :, :]).reshape(-1, self.rank)
                design = np.concatenate([np.ones((len(product), 1)), product], axis=1)
                target = (np.moveaxis(logs, axis, 0) - rest[None]).reshape(logs.shape[axis], -1)
                seen = np.moveaxis(known, axis, 0).reshape(logs.shape[axis], -1)
                if axis == 0:  # jobs of which little is known are drawn to a typical one
                    bias[0], deviation = self._regress(design, target - product @ typical, seen, self.ridge)
                    factor[0] = deviation + typical
                else:
                    bias[axis], factor[axis] = self._regress(design, target, seen, _FIRST)
            _balance(factor)
            typical = weight @ factor[0] / weight.sum()
        found: Floats = mean + _outer(bias) + np.einsum("jr,tr,kr->jtk", *factor)
        return found

    def _regress(self, design: Floats, target: Floats, seen: NDArray[np.bool_], ridge: float) -> tuple[Floats, Floats]:
        """Ridge regressions on one design, a row of targets each: biases and factors."""
        weight = seen.astype(np.float64)
        width = self.rank + 1
        square = (weight @ (design[:, :, None] * design[:, None, :]).reshape(-1, width * width)).reshape(-1, width, width)
        square += np.diag([_FIRST, *[ridge] * self.rank])
        found = np.linalg.solve(square, ((weight * target) @ design)[:, :, None])[:, :, 0]
        bias: Floats = found[:, 0].astype(np.float64)
        return bias, found[:, 1:].astype(np.float64)


def _start(types: int, counts: int, rank: int) -> tuple[Floats, Floats]:
    """What the regressions begin with: the first product differs by type alone, the second by count alone, others by both, in waves."""
    waves = [np.cos(np.pi * np.outer(np.arange(size) + 0.5, np.arange(rank) // 2 + 1.0) / size) for size in (types, counts)]
    waves[0][:, 1:2] = waves[1][:, 0:1] = 1.0
    return waves[0], waves[1]


def _balance(factor: list[Floats]) -> None:
    """Types and counts of spread one, in place: all of a product's size is in the jobs, whose spread the ridge is about."""
    for axis in (1, 2):
        spread = np.maximum(np.sqrt((factor[axis] ** 2).mean(axis=0)), 1e-9)
        factor[axis] /= spread
        factor[0] *= spread


def _outer(bias: list[Floats]) -> Floats:
    found: Floats = bias[0][:, None, None] + bias[1][None, :, None] + bias[2][None, None, :]
    return found


# What every job may be given, device type by device type, and what is believed of its speed there.
#
# With `profile=three` a new job is known in three cells: at its least size on two types, and at a larger size on one of
# them; which types and sizes goes round, so that together jobs cover all. Every way that a job runs in is known from
# then on. The rest is estimated by collaborative filtering over all jobs, those that have left included; how far off
# estimates were when they were put to the test is counted.

Variant = tuple[int, int]  # device type, devices
_REMEMBERED = 100  # jobs that have left
_SWEEPS = 6  # of the filter, which is fitted at every decision; more gain little


@dataclass(frozen=True)
class HeetVariants:
    """Per job (position in the snapshot) that may be changed now: believed speed of every way it may run."""

    speed: dict[int, dict[Variant, float]]
    held: dict[int, Variant]  # what they hold now
    left: dict[int, float]  # estimated work left
    free: list[int]  # devices per type that no other job has
    known: dict[int, set[Variant]]  # ways whose speed was measured

    def time(self, job: int, variant: Variant) -> float:
        """Seconds to its end in that way."""
        return self.left[job] / self.speed[job][variant]


def read_variants(snapshot: Snapshot, memory: dict[str, Any], profile: str) -> tuple[HeetVariants, dict[str, Any]]:
    """All that is known and believed, and what to remember of it."""
    jobs, capacity = snapshot.jobs, snapshot.cluster.capacity
    phase = jobs.phase
    free_to_change = (phase == PENDING) | (((phase == STARTING) | (phase == RUNNING)) & ~jobs.locked)
    mine = np.flatnonzero(free_to_change & (jobs.gpus > 0))
    listed: dict[int, dict[Variant, float]] = {int(job): {} for job in mine}
    for kind, room in enumerate(capacity.tolist()):
        curves = read_curves(snapshot, mine, kind, room)
        for k, job in enumerate(mine.tolist()):
            for entry in range(int(curves.first[k]), int(curves.first[k + 1])):
                listed[job][kind, int(curves.size[entry])] = float(curves.rate[entry])
    held = {job: (int(jobs.type[job]), int(jobs.held[job])) for job in listed if jobs.running[job] and jobs.held[job] > 0}
    held = {job: variant for job, variant in held.items() if variant in listed[job]}
    free = capacity.copy()
    staying = [job for job in range(len(jobs)) if job not in held and jobs.running[job] and jobs.held[job] > 0]
    for job in staying:
        free[int(jobs.type[job])] -= int(jobs.held[job])
    rows = {job: str(int(jobs.rows[job])) for job in listed}
    known, remembered = _known(listed, held, rows, memory, profile)
    speed = listed if profile == "all" else _believed(listed, known, rows, remembered, snapshot)
    left = dict(zip(listed, np.maximum(jobs.remaining[mine], 1e-9).tolist()))
    return HeetVariants(speed, held, left, [max(int(room), 0) for room in free], known), remembered


def _known(
    listed: dict[int, dict[Variant, float]], held: dict[int, Variant], rows: dict[int, str], memory: dict[str, Any], profile: str
) -> tuple[dict[int, set[Variant]], dict[str, Any]]:
    """Which cells have been measured; memory keeps them by name, as texts 'type/count'."""
    if profile == "all":
        return {job: set(variants) for job, variants in listed.items()}, {}
    seen: dict[str, dict[str, float]] = memory.get("seen", {})
    errors = list(memory.get("errors", [0, 0.0]))
    believed = memory.get("believed", {})
    fresh: dict[str, dict[str, float]] = {}
    known: dict[int, set[Variant]] = {}
    for job, variants in listed.items():
        cells = dict(seen.get(rows[job], {}))
        for variant in _profiled(variants, int(rows[job])) if not cells else []:
            cells[_text(variant)] = variants[variant]
        if job in held and _text(held[job]) not in cells:
            guess = believed.get(rows[job], {}).get(_text(held[job]))
            if guess is not None:
                errors = [errors[0] + 1, errors[1] + abs(guess / variants[held[job]] - 1.0)]
            cells[_text(held[job])] = variants[held[job]]
        fresh[rows[job]] = cells
        known[job] = {variant for variant in variants if _text(variant) in cells}
    gone = sorted((row for row in seen if row not in fresh), key=int)[-_REMEMBERED:]
    return known, {"seen": {row: seen[row] for row in gone} | fresh, "errors": errors}


def _profiled(variants: dict[Variant, float], number: int) -> list[Variant]:
    """The three short runs of a new job: its least size on two types and a larger one on the first of them; which ones goes round."""
    kinds = sorted({kind for kind, _ in variants})
    if not kinds:
        return []
    one, two = kinds[number % len(kinds)], kinds[(number + 1) % len(kinds)]
    least, *larger = sorted(count for kind, count in variants if kind == one)
    found = {(one, least), (two, min(count for kind, count in variants if kind == two))}
    return sorted(found | ({(one, larger[number % len(larger)])} if larger else set()))


def _believed(
    listed: dict[int, dict[Variant, float]],
    known: dict[int, set[Variant]],
    rows: dict[int, str],
    remembered: dict[str, Any],
    snapshot: Snapshot,
) -> dict[int, dict[Variant, float]]:
    """Measured speeds, and estimates for the rest."""
    seen: dict[str, dict[str, float]] = remembered["seen"]
    names = sorted(seen, key=int)
    counts = sorted(
        {int(cell.partition("/")[2]) for cells in seen.values() for cell in cells}
        | {n for variants in listed.values() for _, n in variants}
    )
    if not any(seen.values()):
        return listed
    place = {count: k for k, count in enumerate(counts)}
    table: Floats = np.full((len(names), len(snapshot.cluster.types), len(counts)), np.nan)
    for k, name in enumerate(names):
        for cell, speed in seen[name].items():
            kind, _, count = cell.partition("/")
            if int(kind) < table.shape[1]:
                table[k, int(kind), place[int(count)]] = speed
    filled = ElasticFilter(sweeps=_SWEEPS).complete(table)
    number = {name: k for k, name in enumerate(names)}
    return {
        job: {
            variant: variants[variant] if variant in known[job] else float(filled[number[rows[job]], variant[0], place[variant[1]]])
            for variant in variants
        }
        for job, variants in listed.items()
    }


def put_to_the_test(variants: HeetVariants, grants: dict[int, Variant], rows: list[int]) -> dict[str, dict[str, float]]:
    """What is believed of the ways that jobs are given without having been measured in them."""
    return {
        str(rows[job]): {_text(variant): variants.speed[job][variant]}
        for job, variant in grants.items()
        if variant not in variants.known[job]
    }


def _text(variant: Variant) -> str:
    return f"{variant[0]}/{variant[1]}"
