"""Durations of new jobs by a model of those that have ended, which people can inspect (Lucid, ASPLOS 2023, section 3.5).

The model is an explainable boosting machine of `interpret` where that is installed (``pip install
'gantline[explain]'``), else the same without interactions (`additive_boosting`). It is fitted to logarithms of run
times, at every doubling of the jobs that have ended and at the end of every week: a pure function of what has ended
by then, so that resumed runs have the same estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import HIGH, LOW, Job
from gantline.core.tables import Tables

FEWEST = 16
"""Ended jobs that a first model is fitted to."""
_HOUR, _DAY, _WEEK = 3600.0, 86_400.0, 604_800.0
_CODES = (("user", Job.USER), ("queue", Job.QUEUE), ("app", Job.APP), ("model", Job.MODEL), ("gpus", Job.GPUS))
_MADE_HERE = (LOW, HIGH)


class DurationModel(Protocol):
    """What predicts logarithms of seconds."""

    def predict(self, table: Floats) -> ArrayLike: ...


@dataclass
class BoostedEstimates:
    """The model of one run; it is fitted again when enough has ended."""

    fitted_to: int = 0
    model: DurationModel | None = None
    kind: str = ""
    features: tuple[str, ...] = ()
    fits: int = 0
    importances: dict[str, float] = field(default_factory=dict)
    _run: Tables | None = field(default=None, repr=False)

    def estimate(self, tables: Tables, rows: Ints, now: float) -> Floats:
        """Seconds that these rows will take; NaN where too little has ended."""
        if self._run is not tables:  # another run of the same options begins
            self.fitted_to, self.fits, self._run = 0, 0, tables
        ended = np.flatnonzero(~np.isnan(tables.F[Job.FINISH]))
        ended = ended[np.lexsort((ended, tables.F[Job.FINISH][ended]))]
        count = _examples(tables.F[Job.FINISH][ended], now)
        if count < FEWEST:
            return np.full(len(rows), np.nan)
        if count != self.fitted_to:
            self._fit(tables, ended[:count])
        assert self.model is not None
        found: Floats = np.exp(np.asarray(self.model.predict(_table(tables, rows, self.features)), dtype=np.float64))
        return found

    def summary(self) -> dict[str, object]:
        """What the summary shows of it: which kind of model, how often it was fitted, and what it goes by."""
        ranked = sorted(self.importances.items(), key=lambda entry: (-entry[1], entry[0]))
        return {
            "kind": self.kind,
            "fits": self.fits,
            "examples": self.fitted_to,
            "features": {name: round(value, 3) for name, value in ranked},
        }

    def _fit(self, tables: Tables, ended: Ints) -> None:
        metrics = tuple(
            name for name in sorted(tables.metrics) if name not in _MADE_HERE and not np.isnan(tables.metrics[name][ended]).all()
        )
        self.features = (*(name for name, _ in _CODES), "hour", "weekday", *metrics)
        table, target = _table(tables, ended, self.features), np.log(tables.F[Job.WORK][ended])
        self.model, self.kind, self.importances = _fitted(table, target, self.features)
        self.fitted_to, self.fits = len(ended), self.fits + 1


def _examples(finish: Floats, now: float) -> int:
    """How many of the ended jobs, in order of their ends, the present model is fitted to."""
    doubled = FEWEST
    while 2 * doubled <= len(finish):
        doubled *= 2
    by_week = int(np.searchsorted(finish, now // _WEEK * _WEEK, side="right"))
    return max(doubled if len(finish) >= FEWEST else 0, by_week)


def _table(tables: Tables, rows: Ints, features: tuple[str, ...]) -> Floats:
    """One row per job, one column per feature; what is not known is -1."""
    arrival, codes = tables.F[Job.ARRIVAL][rows], dict(_CODES)
    columns = []
    for name in features:
        if name in codes:
            columns.append(tables.I[codes[name]][rows].astype(np.float64))
        elif name == "hour":
            columns.append(np.floor(arrival % _DAY / _HOUR))
        elif name == "weekday":
            columns.append(np.floor(arrival % _WEEK / _DAY))
        else:
            columns.append(np.nan_to_num(tables.metrics[name][rows], nan=-1.0))
    return np.stack(columns, axis=1)


def _fitted(table: Floats, target: Floats, features: tuple[str, ...]) -> tuple[DurationModel, str, dict[str, float]]:
    """The model, what it is, and how much each feature matters."""
    try:
        from interpret.glassbox import ExplainableBoostingRegressor  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        plain = fit_additive(table, target, features)
        return plain, "additive boosting (interpret is not installed)", plain.importances()
    machine = ExplainableBoostingRegressor(feature_names=list(features), outer_bags=4, random_state=0, n_jobs=1)
    machine.fit(table, target)
    return machine, "explainable boosting machine", dict(zip(machine.term_names_, map(float, machine.term_importances())))


# A sum of one curve per feature, fitted by boosting in turn (Lou et al., KDD 2012): a model of which each part can be
# drawn and checked.
#
# It is what an explainable boosting machine (Nori et al., 2019) is without interactions and bagging, and stands in
# for one where `interpret` is not installed.

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
