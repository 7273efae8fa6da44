"""Figures of a search: how good trials were as it went on, and along each parameter; two objectives against each other."""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.lab.experiment.tuning.search import Trial
from gantline.lab.experiment.tuning.search_result import SearchResult, value_of
from gantline.lab.experiment.tuning.space import Choices, Range
from gantline.lab.report.figures.chart import Chart
from gantline.lab.report.figures.panels import Axis, Line, Panel, Points, floats

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
