"""Completion recovers low-rank matrices; references stand for jobs nobody has run together."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.core.errors import UsageError
from gantline.models.sharing.matrix_completion import Profiling, complete, estimate_pairs, estimation_error
from gantline.models.sharing.throughput_table import ThroughputTable


def classes(jobs: int = 12, seed: int = 0) -> ThroughputTable:
    """Job types of three classes: what two get together depends on their classes alone, up to one percent."""
    rng = np.random.default_rng(seed)
    ratio = np.array([[0.5, 0.7, 0.9], [0.6, 0.4, 0.8], [0.95, 0.9, 0.97]])
    names = [f"('job{i}', 1)" for i in range(jobs)]
    body: dict[str, dict[str, dict[str, object]]] = {}
    for device, speed in (("slow", 1.0), ("fast", 4.0)):
        alone = speed * rng.uniform(1, 5, jobs)
        shake = rng.uniform(0.99, 1.01, (jobs, jobs))
        own = np.array([[alone[i] * ratio[i % 3, j % 3] * shake[i, j] for j in range(jobs)] for i in range(jobs)])
        own[np.diag_indices(jobs)] = [alone[i] * ratio[i % 3, i % 3] for i in range(jobs)]
        body[device] = {names[i]: {"null": alone[i]} | {names[j]: [own[i, j], own[j, i]] for j in range(jobs)} for i in range(jobs)}
    return ThroughputTable.of(body)


def test_a_low_rank_matrix_is_recovered_from_half_of_its_entries() -> None:
    rng = np.random.default_rng(1)
    truth = rng.uniform(0.2, 1.0, (30, 2)) @ rng.uniform(0.2, 1.0, (2, 20))
    known = rng.random(truth.shape) < 0.5
    guess = complete(np.where(known, truth, 0.0), known, rank=2)
    assert np.abs(guess - truth).mean() < 0.02
    assert np.array_equal(guess[known], truth[known])


def test_completion_without_any_entry_is_refused() -> None:
    with pytest.raises(UsageError, match="nothing is known"):
        complete(np.zeros((2, 2)), np.zeros((2, 2), dtype=bool))


def test_full_profiling_with_all_references_gives_the_truth() -> None:
    table = classes()
    found = estimate_pairs(table, Profiling(fraction=1.0, references=12), np.random.default_rng(0))
    assert found.like.tolist() == list(range(12))
    assert estimation_error(found.table, table).worst == pytest.approx(0.0, abs=1e-12)


def test_few_references_still_find_the_class_of_a_job() -> None:
    table = classes()
    found = estimate_pairs(table, Profiling(fraction=0.5, references=6), np.random.default_rng(2))
    assert len(set(found.like.tolist())) <= 6
    right = sum(int(like) % 3 == i % 3 for i, like in enumerate(found.like))
    assert right >= 11
    assert estimation_error(found.table, table).mean < 0.03
    assert found.measured < 12 * 12 * 2


def test_a_recognised_reference_needs_no_runs_of_its_own() -> None:
    table = classes()
    known = estimate_pairs(table, Profiling(0.5, 12, recognise=True), np.random.default_rng(0))
    assert known.measured == 12 * 12 * 2
    assert known.like.tolist() == list(range(12))


def test_estimates_are_possible_pairs() -> None:
    table = classes()
    paired = estimate_pairs(table, Profiling(0.3, 5), np.random.default_rng(4)).table.packed.paired
    assert ((paired > 0) == (paired.transpose(1, 0, 2) > 0)).all()
    assert (paired <= table.packed.alone[:, None, :] + 1e-12).all()


@pytest.mark.parametrize(("fraction", "references"), [(0.0, 3), (1.5, 3), (0.5, 0)])
def test_impossible_profiling_is_refused(fraction: float, references: int) -> None:
    with pytest.raises(UsageError, match="profiling"):
        Profiling(fraction, references)
