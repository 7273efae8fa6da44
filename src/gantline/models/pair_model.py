"""How fast gangs are that share devices, by a table of pairs; and how likely a job is to disturb others, as a tree that people can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from gantline.models.decision_tree import DecisionTree, fit_tree
from gantline.models.model import Gang, PerformanceModel
from gantline.models.pair_table import JUMBO, AloneProfile, PairTable

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
