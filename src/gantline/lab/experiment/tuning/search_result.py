"""The trials of a search as values: which one won, and the front of several objectives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gantline.core.objective import Objective
from gantline.lab.experiment.tuning.search import Trial
from gantline.lab.experiment.tuning.space import SearchSpace


@dataclass(frozen=True, repr=False)
class SearchResult:
    """What was searched, by which objectives, and the trials."""

    space: SearchSpace
    objectives: tuple[Objective, ...]
    trials: tuple[Trial, ...]
    best: Trial
    front_held_back: Mapping[int, tuple[float, ...]]
    """By number of trial, for the trials of the front: their scores on what was held back."""

    @property
    def front(self) -> list[Trial]:
        """The trials that no other one beats in every objective, those that do better in the first objective first."""
        return front_of(self.trials)


def front_of(trials: tuple[Trial, ...]) -> list[Trial]:
    """The trials that no other one beats: not worse in every objective and better in one. Of equal ones the first stays."""
    known = [one for one in trials if one.scores]
    found: dict[tuple[float, ...], Trial] = {}
    for one in known:
        beaten = any(all(a <= b for a, b in zip(other.scores, one.scores)) and other.scores != one.scores for other in known)
        if not beaten:
            found.setdefault(one.scores, one)
    return [found[scores] for scores in sorted(found)]


def best_of(trials: tuple[Trial, ...]) -> Trial | None:
    """The trial with the least mean of its scores, the earliest of equals; None where all failed."""
    known = [one for one in trials if one.scores]
    return min(known, key=lambda one: (float(np.mean(one.scores)), one.number)) if known else None


def value_of(trial: Trial, name: str) -> str:
    """The value of a parameter, or of one number of a list."""
    whole, dot, place = name.partition(".")
    return trial.settings[whole].split(",")[int(place)] if dot else trial.settings[name]
