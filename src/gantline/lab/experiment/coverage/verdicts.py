"""How often verdicts are wrong where nothing differs, how often they detect what does, and how often intervals hold the truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gantline.core.arrays import Ints
from gantline.lab.experiment.coverage.population import METRICS, Population
from gantline.lab.experiment.difference import Difference, judged_together
from gantline.lab.experiment.intervals import change_interval


def table_of(population: Population, names: Sequence[str], seeds: Ints, confidence: float = 0.95) -> tuple[Difference, ...]:
    """The comparisons that `gantline compare` makes of these seeds: every policy against the first, every metric."""
    first, *others = names
    made = [
        Difference(
            name,
            first,
            metric,
            float(population[name][seeds, column].mean()),
            float(population[first][seeds, column].mean()),
            change_interval(population[first][seeds, column], population[name][seeds, column], confidence),
            "seeds",
        )
        for name in others
        for column, metric in enumerate(METRICS)
    ]
    return judged_together([made])[0]


def wrong_tables(population: Population, names: Sequence[str], seeds: int, tables: int) -> float:
    """The share of tables of `seeds` seeds with any verb; where all policies are equal, each verb is wrong."""
    return sum(any(one.sign for one in table) for table in _tables(population, names, seeds, tables)) / tables


def power_over(population: Population, names: Sequence[str], seeds: int, tables: int) -> float:
    """The share of tables in which the mean JCT of the second policy differs from that of the first by more than chance."""
    return sum(bool(table[0].sign) for table in _tables(population, names, seeds, tables)) / tables


def _tables(population: Population, names: Sequence[str], seeds: int, tables: int) -> Iterator[tuple[Difference, ...]]:
    random, size = np.random.default_rng(seeds), len(population[names[0]])
    for _ in range(tables):
        yield table_of(population, names, random.choice(size, seeds, replace=False))


def coverage_over(
    population: Population, pair: tuple[str, str], column: int, seeds: int, confidence: float, draws: int, seed: int = 0
) -> float:
    """How often the interval of a change holds the change of the whole population."""
    old, new = (population[name][:, column] for name in pair)
    truth = new.mean() / old.mean() - 1.0
    random, hits = np.random.default_rng(seed), 0
    for _ in range(draws):
        rows = random.choice(len(old), seeds, replace=False)
        found = change_interval(old[rows], new[rows], confidence)
        hits += found.low <= truth <= found.high
    return hits / draws
