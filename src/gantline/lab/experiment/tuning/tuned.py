"""What a tuning found: its trials, the settings that won, the front of several objectives, and what was gained."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from gantline.lab.experiment.tuning.figures import chart_of_search
from gantline.lab.experiment.tuning.gain import Gain
from gantline.lab.experiment.tuning.search import Trial
from gantline.lab.experiment.tuning.search_result import SearchResult, value_of
from gantline.lab.experiment.tuning.space import Range
from gantline.lab.experiment.tuning.trials import Values
from gantline.lab.experiment.tuning.workloads import Workloads
from gantline.traces.files.policies import load_policy, settings_text

if TYPE_CHECKING:
    from gantline.core.policy import Policy
    from gantline.lab.report.figures import Chart

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
