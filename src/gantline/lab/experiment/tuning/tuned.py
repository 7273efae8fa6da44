"""What a tuning found: its trials, the settings that won, the front of several objectives, and what was gained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.policy import Policy
from gantline.lab.experiment.intervals import Interval, fewest_samples, mean_interval
from gantline.lab.experiment.tuning.search import SearchResult, Trial, value_of
from gantline.lab.experiment.tuning.space import Choices, Range
from gantline.lab.experiment.tuning.workloads import Values, Workloads
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.panels import Axis, Line, Panel, Points, floats
from gantline.simulator.objective import WORDS, Objective
from gantline.traces.files.policies import load_policy, settings_text

BEST = "best.yaml"
FRONT = "front"


@dataclass(frozen=True, repr=False)
class Tuned(SearchResult):
    """Printing it gives the sentences; `frame` has a row per trial, `best` is the trial that won, `gains` what it gained."""

    workloads: Workloads
    usual: Mapping[str, Values]
    gains: tuple[Gain, ...]
    folder: Path

    @property
    def policy(self) -> Policy:
        """The policy with the settings that won."""
        return load_policy(self.space.policy, self.best.settings)

    @property
    def file(self) -> Path:
        """The settings that won, as `--policy` takes them."""
        return self.folder / BEST

    @property
    def failures(self) -> list[str]:
        """Trials that have no result, with the reason."""
        return [f"trial {one.number} ({_spelled(one.settings)}): {one.tried.failure}" for one in self.trials if one.tried.failure]

    @property
    def sentences(self) -> list[str]:
        """What was found, and how far it can be trusted."""
        name, tried = self.space.title, len(self.trials)
        if self.best.scores and all(score >= 1.0 for score in self.best.scores):
            first = f"No trial of {tried} did better than {name} as it is."
        else:
            first = f"The best of {tried} trials is {name} with {_spelled(self.best.settings)}."
        if len(self.objectives) > 1:
            first = f"{len(self.front)} of {tried} trials are on the front. By the mean of the objectives: {first[0].lower()}{first[1:]}"
        return [first, *(gain.sentence for gain in self.gains), *self._at_the_edge()]

    def _at_the_edge(self) -> list[str]:
        """A note if the search ended at the edge of a range."""
        edges = [one for one in self.space.searched if isinstance(one, Range) and one.is_edge(value_of(self.best, one.name))]
        return [f"The best {one.name} lies at an end of its range, {one}: a wider one may hold better ones." for one in edges]

    @property
    def frame(self) -> pl.DataFrame:
        """A row per trial: its settings, a score per objective (1 is as good as the settings as they are), the mean of every value."""
        names = list(dict.fromkeys(name for one in self.trials for name in one.settings))
        words = list(dict.fromkeys(word for one in self.objectives for word in one.words))
        best = {one.number for one in self.front}
        rows = [
            [one.number, *(one.settings.get(name) for name in names), *_padded(one.scores, len(self.objectives))]
            + [_mean([values[word] for values in one.tried.values.values()]) for word in words]
            + [one.number in best, one.tried.failure]
            for one in self.trials
        ]
        scores = ["score"] if len(self.objectives) == 1 else [f"score {one}" for one in self.objectives]
        schema: dict[str, Any] = {"trial": pl.Int64} | dict.fromkeys(names, pl.String) | dict.fromkeys([*scores, *words], pl.Float64)
        return pl.DataFrame(rows, schema=schema | {"front": pl.Boolean, "failure": pl.String}, orient="row")

    def plot(self, figure: str = "search") -> Chart:
        """A figure: "search" (how good trials were), the name of a parameter (along it), or, of several objectives, "front"."""
        return chart_of_search(self, figure)

    def settings_file(self, trial: Trial, folder: Path) -> str:
        """The contents of a file with the settings of a trial."""
        scores = ", ".join(f"{one}: {100 * (score - 1):+.1f} %" for one, score in zip(self.objectives, trial.scores))
        remark = f"trial {trial.number} of {len(self.trials)}; on the workloads of the search, beside the settings as they are: {scores}"
        policy = load_policy(self.space.policy, trial.settings)
        return settings_text(self.space.policy, {name: getattr(policy, name) for name in trial.settings}, folder, remark)

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    __repr__ = __str__


def _spelled(settings: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())


def _padded(scores: tuple[float, ...], size: int) -> tuple[float, ...]:
    return scores or (math.nan,) * size


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


# What tuning gained, in words: on the workloads that were held back, with an interval, and beside it on those the search has seen.


@dataclass(frozen=True)
class Gain:
    """How an objective changed from the settings as they are: -0.1 is a tenth less. None: nothing was held back."""

    objective: Objective
    seen: Interval
    held_back: Interval | None

    @property
    def sentence(self) -> str:
        """The sentence that the numbers support."""
        what = f"the sum {self.objective}" if self.objective.is_sum else WORDS[self.objective.words[0]].title
        seen = f"on the {_count(self.seen)} that the search has seen it is {_change(self.seen)}"
        if self.held_back is None:
            return f"Nothing was held back, so this says nothing about other workloads: {seen.replace(' it ', f' {what} ', 1)}."
        held = self.held_back
        text = f"On the {_count(held)} held back, {what} is {_change(held)}"
        if not held.known:
            fewest = fewest_samples(held.confidence)
            return f"{text}; {seen}. That decides nothing: an interval needs {fewest} workloads that are held back."
        text += f", {100 * held.confidence:g} % interval {100 * held.low:+.1f}..{100 * held.high:+.1f} %; {seen}."
        if held.high < 0:
            return text
        if held.low > 0:
            return f"{text} The tuned settings do worse where they were not tuned: keep those that were there."
        return f"{text} That is no clear gain."


def gain_of(
    objective: Objective,
    seen: tuple[Mapping[str, Values], Mapping[str, Values]],
    held_back: tuple[Mapping[str, Values], Mapping[str, Values]],
    confidence: float,
) -> Gain:
    """The change of an objective; each pair is the values of every workload with the tuned settings and with those as they are."""
    return Gain(objective, _interval(objective, *seen, confidence), _interval(objective, *held_back, confidence) if held_back[0] else None)


def _interval(objective: Objective, tuned: Mapping[str, Values], usual: Mapping[str, Values], confidence: float) -> Interval:
    """Workloads are paired with themselves; more seeds of a trace that does not draw another workload add nothing."""
    shares = np.array([objective.proportion(values, usual[name]) for name, values in tuned.items()])
    found = mean_interval(shares, confidence)
    return replace(found, value=found.value - 1.0, low=max(found.low - 1.0, -1.0), high=found.high - 1.0)  # nothing falls by more than all


def _count(interval: Interval) -> str:
    return "one workload" if interval.samples == 1 else f"{interval.samples} workloads"


def _change(interval: Interval) -> str:
    if not interval.value:
        return "the same"
    return f"{100 * abs(interval.value):.1f} % {'lower' if interval.value < 0 else 'higher'}"


# Figures of a search: how good trials were as it went on, and along each parameter; two objectives against each other.

_WIDE = 5.0  # from this ratio of the ends on an axis of scores is logarithmic
_NOTE = "Less is better. Scores are means over the workloads of the search, beside the settings as they are."


def charts_of_search(tuned: SearchResult) -> list[Chart]:
    """All figures that there are."""
    names = ["search", *(one.name for one in tuned.space.searched), *(["front"] if len(tuned.objectives) > 1 else [])]
    return [chart_of_search(tuned, name) for name in names]


def chart_of_search(tuned: SearchResult, figure: str) -> Chart:
    """One figure: "search", "front", or the name of a parameter that was searched."""
    along = {one.name: one for one in tuned.space.searched}
    if figure == "search":
        return _search(tuned)
    if figure == "front":
        return _front(tuned)
    if figure not in along:
        raise NotFoundError(f"no figure '{figure}'", where="plot", fix=near(figure, ["search", "front", *along]))
    return _along(tuned, along[figure])


def _search(tuned: SearchResult) -> Chart:
    """The score against the number of the trial."""
    known, score = _scores(tuned)
    number = floats([one.number for one in known])
    best = Line("best so far", number, np.minimum.accumulate(score), colour=0, step=True)
    usual = Line("as it is", number[[0, -1]], floats([1.0, 1.0]), colour=1)
    panel = Panel(Axis("trial"), _score_axis(tuned, score), (usual, best, Points("trials", number, score, 0)), "above")
    return Chart("search", f"Search of {tuned.space.title}", (panel,), (_NOTE,))


def _along(tuned: SearchResult, one: Range | Choices) -> Chart:
    """The score against a parameter."""
    known, score = _scores(tuned)
    texts = [value_of(trial, one.name) for trial in known]
    if isinstance(one, Range):
        at, x = floats([float(text) for text in texts]), _range_axis(one)
    else:
        at = floats([one.values.index(text) for text in texts])
        x = Axis(one.name, low=-0.5, high=len(one.values) - 0.5, ticks=tuple((float(k), text) for k, text in enumerate(one.values)))
    won = known.index(tuned.best)
    layers = (Points("trials", at, score, 0, quiet=True), Points("best", at[[won]], score[[won]], 0, ("best",)))
    title = f"{tuned.space.title}: trials along {one.name}"
    return Chart(f"along-{one.name}", title, (Panel(x, _score_axis(tuned, score), layers),), (_NOTE,))


def _front(tuned: SearchResult) -> Chart:
    """The first two objectives against each other: all trials, the front, and where its settings stand on what was held back."""
    if len(tuned.objectives) < 2:
        raise UsageError("a front has several objectives", where="plot front", fix="tune with --objective mean-jct,worst-rho")
    known, front = [one for one in tuned.trials if one.scores], tuned.front
    beaten = [one for one in known if one not in front]
    layers: list[Line | Points] = [Points("beaten", *_at(beaten), 0, quiet=True), Line("front", *_at(front), colour=0)]
    layers.append(Points("on the front", *_at(front), 0, tuple(str(one.number) for one in front), (-1, -1)))
    if held := tuned.front_held_back:
        x, y = (floats([scores[k] for scores in held.values()]) for k in (0, 1))
        layers.append(Points("the same settings on what was held back", x, y, 1, tuple(map(str, held)), (1, 1)))
    layers.append(Points("as it is", floats([1.0]), floats([1.0]), 2, ("as it is",)))
    axes = [_axis(str(one), floats([1.0, *(trial.scores[k] for trial in known)])) for k, one in enumerate(tuned.objectives[:2])]
    title = f"{tuned.objectives[0]} against {tuned.objectives[1]}, {tuned.space.title}"
    notes = ["Less is better in both. Numbers are those of the trials."]
    notes += ["Other objectives are not drawn."] * (len(tuned.objectives) > 2)
    return Chart("front", title, (Panel(axes[0], axes[1], tuple(layers), "above"),), tuple(notes))


def _scores(tuned: SearchResult) -> tuple[list[Trial], Floats]:
    known = [one for one in tuned.trials if one.scores]
    return known, floats([float(np.mean(one.scores)) for one in known])


def _at(trials: list[Trial]) -> tuple[Floats, Floats]:
    return floats([one.scores[0] for one in trials]), floats([one.scores[1] for one in trials])


def _score_axis(tuned: SearchResult, score: Floats) -> Axis:
    objectives = tuned.objectives
    label = str(objectives[0]) if len(objectives) == 1 else "mean of the objectives"
    return _axis(label, np.append(score, 1.0))


def _axis(label: str, values: Floats) -> Axis:
    """An axis of scores with some room, logarithmic where they spread widely."""
    low, high = float(values.min()), float(values.max())
    if low > 0 and high / low > _WIDE:
        return Axis(label, "1: as it is", log=True, low=0.9 * low, high=1.1 * high, ticks=_ticks(0.9 * low, 1.1 * high))
    room = 0.1 * (high - low) or 0.1
    return Axis(label, "1: as it is", low=low - room, high=high + room)


def _range_axis(one: Range) -> Axis:
    ticks = _ticks(one.low, one.high) if one.log else ()
    return Axis(one.name, log=one.log, low=one.low, high=one.high, ticks=ticks)


def _ticks(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Powers of ten, and where these are few, halves and fifths of them, on a logarithmic axis."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1.0,) if len(powers) > 4 else (1.0, 2.0, 5.0)
    values = [step * 10.0**power for power in powers for step in steps]
    return tuple((value, f"{value:,g}") for value in values if low <= value <= high)
