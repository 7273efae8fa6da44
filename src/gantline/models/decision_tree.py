"""A small classification tree that people can read: splits by Gini impurity, pruned by cost and complexity (CART, Breiman et al. 1984)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats, Ints


@dataclass(frozen=True)
class TreeNode:
    """A leaf, or a question: is the feature at most the threshold?"""

    counts: tuple[int, ...]  # per class, of what it was fitted to
    feature: int = -1
    threshold: float = 0.0
    below: TreeNode | None = None
    above: TreeNode | None = None

    @property
    def answer(self) -> int:
        """The most frequent class; the lower one of equals."""
        return int(np.argmax(self.counts))

    @property
    def leaves(self) -> int:
        return 1 if self.below is None or self.above is None else self.below.leaves + self.above.leaves

    @property
    def impurity(self) -> float:
        """Of the leaves below it, weighted by how many examples they hold."""
        if self.below is not None and self.above is not None:
            return self.below.impurity + self.above.impurity
        return _impurity(np.array(self.counts))


@dataclass(frozen=True)
class DecisionTree:
    """A fitted tree over named features."""

    root: TreeNode
    features: tuple[str, ...]

    def predict(self, row: Sequence[float]) -> int:
        """The class of one example; where a value is NaN, the side that most examples went to."""
        node = self.root
        while node.below is not None and node.above is not None:
            value = row[node.feature]
            low = value <= node.threshold if value == value else sum(node.below.counts) >= sum(node.above.counts)
            node = node.below if low else node.above
        return node.answer

    def lines(self, classes: Sequence[str]) -> list[str]:
        """The tree for people, a line per question and per answer."""
        return list(self._lines(self.root, classes, ""))

    def _lines(self, node: TreeNode, classes: Sequence[str], indent: str) -> Iterator[str]:
        if node.below is None or node.above is None:
            yield f"{indent}{classes[node.answer]} ({sum(node.counts)})"
            return
        for word, side in (("<=", node.below), (">", node.above)):
            yield f"{indent}{self.features[node.feature]} {word} {node.threshold:g}"
            yield from self._lines(side, classes, indent + "  ")


def fit_tree(table: Floats, classes: Ints, features: tuple[str, ...], *, kinds: int, prune: float) -> DecisionTree:
    """The tree of these examples [example, feature]; `prune`: the impurity per example that a leaf must save to be kept."""
    root = _grow(table, classes, kinds)
    return DecisionTree(_pruned(root, prune * max(len(classes), 1)), features)


def _grow(table: Floats, classes: Ints, kinds: int) -> TreeNode:
    counts = np.bincount(classes, minlength=kinds)
    best, split = _impurity(counts) - 1e-12, None
    for feature in range(table.shape[1]):
        order = np.argsort(table[:, feature], kind="stable")
        values, below = table[order, feature], np.zeros(kinds, dtype=np.int64)
        for place in range(len(order) - 1):
            below[classes[order[place]]] += 1
            if values[place] < values[place + 1]:
                found = _impurity(below) + _impurity(counts - below)
                if found < best - 1e-12:
                    best, split = found, (feature, float((values[place] + values[place + 1]) / 2))
    if split is None:
        return TreeNode(tuple(counts.tolist()))
    low = table[:, split[0]] <= split[1]
    return TreeNode(tuple(counts.tolist()), *split, _grow(table[low], classes[low], kinds), _grow(table[~low], classes[~low], kinds))


def _pruned(node: TreeNode, alpha: float) -> TreeNode:
    """The smallest tree whose leaves each save at least `alpha`: weakest link first, from the leaves up."""
    if node.below is None or node.above is None:
        return node
    kept = TreeNode(node.counts, node.feature, node.threshold, _pruned(node.below, alpha), _pruned(node.above, alpha))
    leaf = TreeNode(node.counts)
    saved = (leaf.impurity - kept.impurity) / (kept.leaves - 1)
    return kept if saved > alpha else leaf


def _impurity(counts: Ints) -> float:
    """Gini impurity times the number of examples."""
    total = int(counts.sum())
    return float(total - np.square(counts).sum() / total) if total else 0.0
