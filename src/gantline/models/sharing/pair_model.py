"""How fast gangs are that share devices, by tables of pairs; and how likely a job is to disturb others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.errors import NotFoundError, near
from gantline.models.model import Gang, PerformanceModel
from gantline.models.sharing.pair_table import JUMBO, AloneProfile, PairTable
from gantline.models.sharing.throughput_table import TableSpeeds, ThroughputTable

SCORE_NAMES = ("tiny", "medium", "jumbo")
_PRUNE = 0.02


@dataclass(frozen=True)
class PairModel(PerformanceModel):
    """Speeds of pairs; gangs of their own have the speeds of their options. More than two on a device slow each other down pair by pair."""

    about_gangs: ClassVar[bool] = False

    table: PairTable
    alone: Mapping[str, AloneProfile]
    """Configurations that were measured alone, in pairs too or not, and those that only the trace describes."""

    of_job: Mapping[str, str] = field(default_factory=dict)
    """Job -> its configuration, where the trace names it in other words than its model."""

    def configuration(self, job: str, model: str) -> str:
        """What a job trains, as the table names it."""
        return self.of_job.get(job, model)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.table.names)}

    @cached_property
    def _stand_ins(self) -> dict[str, int | None]:
        """The row of the table that answers for each configuration: its own, or that of the nearest one."""
        found: dict[str, int | None] = dict(self._places)
        for name, profile in self.alone.items():
            if name not in found:
                like = self.table.nearest(profile, self.alone)
                found[name] = None if like is None else self._places[like]
        return found

    def speed(self, own: str, other: str) -> float | None:
        """The part of its speed alone that one configuration keeps beside another; None: nothing is known of one of them."""
        a, b = self._stand_ins.get(own), self._stand_ins.get(other)
        return None if a is None or b is None else float(self.table.speed[a, b])

    def stand_in(self, name: str) -> str | None:
        """The configuration of the table that answers for this one; None: nothing is known of it."""
        place = self._stand_ins.get(name)
        return None if place is None else self.table.names[place]

    def kept(self, own: str, other: str, type: int, gpus: int, nodes: int = 1) -> float | None:
        """The same for gangs of so many devices of a type; 0: the two cannot share. This table holds for all of them."""
        return self.speed(own, other)

    def granted(self, gang: Gang) -> float | None:
        """Work per second beside its mates; a mate of which nothing is known leaves the devices divided as the grants say."""
        if not gang.mates:
            return None
        rate, own = gang.alone, self.configuration(gang.job, gang.model)
        for mate in gang.mates:
            kept = self.kept(own, self.configuration(mate.job, mate.model), gang.type, gang.gpus, gang.nodes)
            if kept is None:
                return None
            rate *= kept
        return rate

    @cached_property
    def tree(self) -> DecisionTree:
        """Which score a configuration has, by what was measured of it alone."""
        known = [name for name in self.table.names if name in self.alone and not np.isnan(np.array(self.alone[name])).any()]
        scores = np.array([self.table.scores[self._places[name]] for name in known], dtype=np.int64)
        rows = np.array([self.alone[name] for name in known]).reshape(-1, len(AloneProfile._fields))
        return fit_tree(rows, scores, AloneProfile._fields, kinds=len(SCORE_NAMES), prune=_PRUNE)

    @cached_property
    def _scores(self) -> dict[str, int]:
        found = dict(zip(self.table.names, self.table.scores))
        for name, profile in self.alone.items():
            if name not in found:
                found[name] = JUMBO if np.isnan(np.array(profile)).all() else self.tree.predict(profile)
        return found

    def sharing_score(self, name: str) -> int:
        """How much a configuration disturbs others and is disturbed: 0 tiny, 1 medium, 2 jumbo, which a stranger is taken for."""
        return self._scores.get(name, JUMBO)


# How fast two gangs are that share their devices, by device type and size of the gangs, from a table of throughputs.
#
# Gavel (OSDI 2020) measured pairs so: steps per second alone and beside another job, on each type and for each size,
# within a node and across nodes; two zeros say that the two cannot share. What is kept of the speed alone is used
# here, so that work may be counted in any unit. A pair that was not measured is estimated from the others of its type
# and size.

_LEAST = 0.3
"""An estimate below this is taken for a pair that cannot share: right for 98 % of the pairs of Gavel's file that were left out."""


class PairPlace(NamedTuple):
    """Where a pair was measured."""

    type: int  # code of the device type in the cluster
    gpus: int
    across: bool  # whether the gangs span nodes


@dataclass(frozen=True)
class TypedPairModel(PairModel):
    """`table` has the mean over all places, from which sharing scores follow; speeds are those of the place."""

    tables: Mapping[PairPlace, PairTable] = field(default_factory=dict)

    def kept(self, own: str, other: str, type: int, gpus: int, nodes: int = 1) -> float | None:
        """By the table of this type and size; of a size that was not measured, by the nearest one, smaller sizes first."""
        a, b = self.stand_in(own), self.stand_in(other)
        for table in self._tables_for(type, gpus, nodes > 1) if a is not None and b is not None else ():
            if a in table.names and b in table.names:
                return float(table.speed[table.names.index(a), table.names.index(b)])
        return None

    def _tables_for(self, type: int, gpus: int, across: bool) -> Iterator[PairTable]:
        places = [place for place in self.tables if place.type == type and place.across <= across]
        nearest = sorted(places, key=lambda place: (place.gpus > gpus, abs(place.gpus - gpus), place.across != across))
        return (self.tables[place] for place in nearest)


def typed_pair_model(
    table: ThroughputTable, types: Sequence[str], alone: Mapping[str, AloneProfile], of_job: Mapping[str, str]
) -> TypedPairModel:
    """The pairs of a table of throughputs on the device types of a cluster, all of which it must have."""
    known = {name.lower(): column for column, name in enumerate(table.types)}
    tables: dict[PairPlace, PairTable] = {}
    for code, name in enumerate(types):
        if name.lower() not in known:
            raise NotFoundError(f"no device type '{name}' in the table of pairs", where=table.source, fix=near(name, table.types))
        for size in sorted({size for _, size in table.keys}):
            rows = np.array([row for row, key in enumerate(table.keys) if key[1] == size])
            names = tuple(table.keys[row][0] for row in rows.tolist())
            for across, speeds in ((False, table.packed), (True, table.spread)):
                measured = _kept(speeds, rows, known[name.lower()])
                if not np.isnan(measured).all():
                    tables[PairPlace(code, size, across)] = PairTable(names, measured, table.source, _LEAST)
    if not tables:
        raise NotFoundError("has no pairs of jobs", where=table.source, fix="name a table with speeds beside other jobs")
    return TypedPairModel(_mean(list(tables.values())), alone, of_job, tables)


def _kept(speeds: TableSpeeds, rows: Ints, column: int) -> Floats:
    """The part of the speed alone that each keeps beside each; what cannot run alone cannot share either."""
    alone = speeds.alone[rows, column][:, None]
    beside = speeds.paired[np.ix_(rows, rows)][:, :, column]
    return np.where(alone > 0.0, beside / np.where(alone > 0.0, alone, 1.0), np.where(np.isnan(alone), np.nan, 0.0))


def _mean(tables: Sequence[PairTable]) -> PairTable:
    """One table with the mean of several, over those in which a pair can share; 0 where it can in none."""
    names = tuple(dict.fromkeys(name for table in tables for name in table.names))
    at = {name: place for place, name in enumerate(names)}
    total, shares, known = (np.zeros((len(names), len(names))) for _ in range(3))
    for table in tables:
        here = np.ix_(*[[at[name] for name in table.names]] * 2)
        total[here] += np.nan_to_num(table.measured)
        shares[here] += table.measured > 0.0
        known[here] += ~np.isnan(table.measured)
    return PairTable(names, np.where(known > 0, total / np.maximum(shares, 1), np.nan), tables[0].source, _LEAST)


# A small classification tree that people can read: splits by Gini impurity, pruned by cost and complexity (CART,
# Breiman et al. 1984).


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
