"""Estimate how fast two jobs run together that have never run together (Gavel, OSDI 2020, section 6; after Quasar).

Some job types are references: all pairs among them are measured. A new job is run next to a random few of them; a
low-rank completion of the matrix (jobs x device type and reference) fills the rest of its row; the reference whose row is
nearest stands for it from then on. Entries are ratios: speed together over speed alone, between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.models.sharing.throughput_table import TableSpeeds, ThroughputTable


def complete(matrix: Floats, known: Bools, *, rank: int = 10, ridge: float = 0.01, rounds: int = 10) -> Floats:
    """The matrix with its unknown entries filled by a product of two thin factors (alternating least squares).

    Known entries are kept. The start is the truncated SVD of the matrix with row means in the gaps, so that equal
    inputs give equal outputs.
    """
    if not known.any():
        raise UsageError("nothing is known", where="matrix completion", fix="profile at least one pair")
    rank = min(rank, *matrix.shape)
    overall = float(matrix[known].mean())
    counts = known.sum(axis=1)
    means = np.where(counts > 0, np.where(known, matrix, 0.0).sum(axis=1) / np.maximum(counts, 1), overall)
    filled = np.where(known, matrix, means[:, None])
    left, values, right = np.linalg.svd(filled, full_matrices=False)
    rows, columns = left[:, :rank] * np.sqrt(values[:rank]), right[:rank].T * np.sqrt(values[:rank])
    for _ in range(rounds):
        rows = _ridge(filled, known, columns, ridge)
        columns = _ridge(filled.T, known.T, rows, ridge)
    return np.where(known, matrix, rows @ columns.T)


def _ridge(matrix: Floats, known: Bools, factor: Floats, ridge: float) -> Floats:
    """For every row the coefficients that explain its known entries by the other factor."""
    masked = known[:, :, None] * factor[None, :, :]
    gram = masked.transpose(0, 2, 1) @ masked + ridge * np.eye(factor.shape[1])
    right = (masked * matrix[:, :, None]).sum(axis=1)
    return np.asarray(np.linalg.solve(gram, right[:, :, None])[:, :, 0])


@dataclass(frozen=True, slots=True)
class Profiling:
    """How much is measured: the fraction of (device type, reference) runs made for a job, and how many references.

    A job whose type is a reference is profiled like any other (Gavel does not know what a new job is), unless
    ``recognise`` says that its name is enough.
    """

    fraction: float = 0.5
    references: int = 16
    recognise: bool = False
    rank: int = 10
    ridge: float = 0.01

    def __post_init__(self) -> None:
        if not 0.0 < self.fraction <= 1.0:
            raise UsageError(f"profiling fraction {self.fraction}", where="profiling", fix="use a number above 0, at most 1")
        if self.references < 1:
            raise UsageError(f"{self.references} references", where="profiling", fix="use at least one")


@dataclass(frozen=True, slots=True)
class PairEstimate:
    """A table whose pairs are estimates, and what stood for what."""

    table: ThroughputTable
    references: Ints  # keys that were measured against each other
    like: Ints  # [key] the reference that stands for it; -1 where no pair was ever measured
    measured: int  # pair runs that the profiling needs, references included


@dataclass(frozen=True, slots=True)
class EstimationError:
    """How far estimated ratios are from the truth."""

    mean: float
    root_mean_square: float
    worst: float
    compared: int
    mistaken_as_impossible: int  # pairs that could share, and are estimated not to
    mistaken_as_possible: int


def estimate_pairs(table: ThroughputTable, profiling: Profiling, rng: np.random.Generator) -> PairEstimate:
    """Estimate all pairs of the table as if only references and profiled runs were measured; per gang size."""
    ratio = _ratios(table)
    estimated = np.full_like(table.packed.paired, np.nan)
    like = np.full(len(table.keys), -1, dtype=np.int64)
    chosen: list[int] = []
    measured = 0
    for size in sorted({size for _, size in table.keys}):
        group = np.array([i for i, (_, s) in enumerate(table.keys) if s == size and _measurable(ratio, i)], dtype=np.int64)
        if not len(group):
            continue
        references = np.sort(rng.choice(group, size=min(profiling.references, len(group)), replace=False))
        chosen += references.tolist()
        measured += len(references) ** 2 * len(table.types)
        for job in group:
            if profiling.recognise and job in references:
                like[job] = job
            else:
                like[job], runs = _nearest(ratio, int(job), references, profiling, rng)
                measured += runs
        for a in group:
            for b in group:
                estimated[a, b] = ratio[like[a], like[b]] * table.packed.alone[a]
        one_sided = (estimated > 0) != (estimated.transpose(1, 0, 2) > 0)
        estimated[one_sided] = 0.0
    return PairEstimate(replace(table, packed=TableSpeeds(table.packed.alone, estimated)), np.array(chosen), like, measured)


def estimation_error(estimate: ThroughputTable, truth: ThroughputTable) -> EstimationError:
    """Errors of the ratios, over all pairs that both tables know."""
    guess, real = _ratios(estimate), _ratios(truth)
    both = ~(np.isnan(guess) | np.isnan(real))
    if not both.any():
        raise UsageError("no pair is in both tables", where="estimation error")
    off = np.abs(guess[both] - real[both])
    return EstimationError(
        mean=float(off.mean()),
        root_mean_square=float(np.sqrt((off**2).mean())),
        worst=float(off.max()),
        compared=int(both.sum()),
        mistaken_as_impossible=int(((guess == 0) & (real > 0) & both).sum()),
        mistaken_as_possible=int(((guess > 0) & (real == 0) & both).sum()),
    )


def _nearest(ratio: Floats, job: int, references: Ints, profiling: Profiling, rng: np.random.Generator) -> tuple[int, int]:
    """The reference nearest to a job by the cosine of their rows, and the number of runs made to find it."""
    rows = np.concatenate((references, [job]))
    matrix = ratio[np.ix_(rows, references)].transpose(0, 2, 1).reshape(len(rows), -1)
    known = ~np.isnan(matrix)
    drawn = rng.random(matrix.shape[1]) < profiling.fraction
    known[-1] &= drawn
    runs = int(known[-1].sum())
    if not runs:
        return int(rng.choice(references)), 0
    guess = np.clip(complete(np.nan_to_num(matrix), known, rank=profiling.rank, ridge=profiling.ridge), 0.0, 1.0)
    lengths = np.linalg.norm(guess, axis=1)
    cosine = guess[:-1] @ guess[-1] / np.maximum(lengths[:-1] * lengths[-1], 1e-12)
    return int(references[int(cosine.argmax())]), runs


def _ratios(table: ThroughputTable) -> Floats:
    """Speed together over speed alone [key, other key, type]; 0 where the job cannot run there even alone."""
    alone = table.packed.alone[:, None, :]
    return np.asarray(np.where(alone > 0, table.packed.paired / np.where(alone > 0, alone, 1.0), table.packed.paired * 0.0))


def _measurable(ratio: Floats, key: int) -> bool:
    return bool((~np.isnan(ratio[key])).any())
