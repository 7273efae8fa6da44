"""Bins of devices of about the same speed: one-dimensional clusters, each outlier in one of its own (PAL, SC 2024, section III-B).

The exact optimum of k-means in one dimension, by dynamic programming over the sorted values, so that nothing depends on a seed.
"""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints

MOST = 10


def speed_bins(values: Floats, *, clusters: int | None = None) -> Floats:
    """Per device the centre of its bin over the median of all centres.

    `clusters` is the number of bins without outliers; None: the number from 2 to 10 with the best silhouette.
    """
    usual = values[values <= values.mean() + 3.0 * values.std(ddof=1)] if len(values) > 1 else values
    wanted = (clusters or best_count(usual)) + len(values) - len(usual)
    label = cluster_values(values, min(wanted, len(np.unique(values))))
    centres = np.array([values[label == each].mean() for each in range(int(label.max()) + 1)])
    bins: Floats = (centres / np.median(centres))[label]
    return bins


def best_count(values: Floats) -> int:
    """How many bins separate these values best: the greatest mean silhouette; fewer on ties."""
    most = min(MOST, len(np.unique(values)) - 1)
    if most < 2:
        return 1
    return max(range(2, most + 1), key=lambda count: (_silhouette(values, cluster_values(values, count)), -count))


def cluster_values(values: Floats, count: int) -> Ints:
    """The cluster of each value, numbered from the smallest values on: least sum of squares within clusters."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    n = len(ordered)
    sums, squares = np.concatenate(([0.0], np.cumsum(ordered))), np.concatenate(([0.0], np.cumsum(ordered**2)))

    def spread(first: Ints, end: int) -> Floats:
        total = sums[end] - sums[first]
        within: Floats = squares[end] - squares[first] - total * total / (end - first)
        return within

    best = np.full((count + 1, n + 1), np.inf)
    best[0, 0] = 0.0
    cut = np.zeros((count + 1, n + 1), dtype=np.int64)
    for clusters in range(1, count + 1):
        for end in range(clusters, n + 1):
            first = np.arange(clusters - 1, end)
            loss = best[clusters - 1, first] + spread(first, end)
            at = int(np.argmin(loss))
            best[clusters, end], cut[clusters, end] = loss[at], first[at]
    label, end = np.empty(n, dtype=np.int64), n
    for clusters in range(count, 0, -1):
        first_place = int(cut[clusters, end])
        label[order[first_place:end]] = clusters - 1
        end = first_place
    return label


def _silhouette(values: Floats, label: Ints) -> float:
    distance = np.abs(values[:, None] - values[None, :])
    count = int(label.max()) + 1
    sizes = np.bincount(label, minlength=count)
    to_each = np.stack([distance[:, label == each].sum(axis=1) for each in range(count)], axis=1)
    rows = np.arange(len(values))
    own = to_each[rows, label] / np.maximum(sizes[label] - 1, 1)
    means = to_each / sizes
    means[rows, label] = np.inf
    other = means.min(axis=1)
    score = np.where(sizes[label] > 1, (other - own) / np.maximum(own, other), 0.0)
    return float(score.mean())
