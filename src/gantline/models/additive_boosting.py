"""A sum of one curve per feature, fitted by boosting in turn (Lou et al., KDD 2012): a model of which each part can be drawn and checked.

It is what an explainable boosting machine (Nori et al., 2019) is without interactions and bagging, and stands in for one where `interpret`
is not installed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats

_BINS = 32
_ROUNDS = 150
_RATE = 0.1
_SMOOTH = 4.0  # a bin with few examples moves less


@dataclass(frozen=True)
class AdditiveModel:
    """What each feature adds to the mean, by bin."""

    features: tuple[str, ...]
    mean: float
    edges: tuple[Floats, ...]
    parts: tuple[Floats, ...]

    def predict(self, table: Floats) -> Floats:
        """One value per row [row, feature]."""
        found = np.full(len(table), self.mean)
        for column, (edges, part) in enumerate(zip(self.edges, self.parts)):
            found += part[np.searchsorted(edges, table[:, column])]
        return found

    def importances(self) -> dict[str, float]:
        """How far each feature moves the result, at most."""
        return {name: float(np.ptp(part)) for name, part in zip(self.features, self.parts)}


def fit_additive(table: Floats, target: Floats, features: tuple[str, ...]) -> AdditiveModel:
    """The model of these examples. Features take turns, so that none explains alone what several share."""
    edges = tuple(_edges(column) for column in table.T)
    bins = [np.searchsorted(cut, column) for cut, column in zip(edges, table.T)]
    weights = [np.bincount(each, minlength=len(cut) + 1) + _SMOOTH for each, cut in zip(bins, edges)]
    mean = float(target.mean())
    left, parts = target - mean, [np.zeros(len(cut) + 1) for cut in edges]
    for _ in range(_ROUNDS):
        for column, (each, weight) in enumerate(zip(bins, weights)):
            step = _RATE * np.bincount(each, weights=left, minlength=len(weight)) / weight
            parts[column] += step
            left = left - step[each]
    return AdditiveModel(features, mean, edges, tuple(parts))


def _edges(column: Floats) -> Floats:
    """Where bins meet: between values where there are few, at quantiles where there are many."""
    values = np.unique(column)
    middles = (values[1:] + values[:-1]) / 2
    return middles if len(middles) < _BINS else np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1]))
