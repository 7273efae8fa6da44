"""The search: Optuna proposes settings, the sweep's workers try them, and the folder keeps both, so that the same command goes on.

Settings are asked for in batches of a fixed size and each trial draws with a seed of its own: neither the number of workers nor a stop
in between changes what is tried.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gantline.core.errors import RefusedError, UsageError
from gantline.lab.experiment.tuning.space import SearchSpace
from gantline.lab.experiment.tuning.workloads import Tried, Values
from gantline.simulator.objective import Objective

if TYPE_CHECKING:
    from optuna import Study


BATCH = 4
STUDY = "study.log"
_SETTINGS = "settings"


@dataclass(frozen=True)
class Trial:
    """One proposal and what it came to: a score per objective beside the settings as they are (1 is as good), or why it has none."""

    number: int
    tried: Tried
    scores: tuple[float, ...] = ()

    @property
    def settings(self) -> Mapping[str, str]:
        """What was tried."""
        return self.tried.settings


# The trials of a search as values: which one won, and the front of several objectives.


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


TryOut = Callable[[Sequence[Mapping[str, str]]], list[Tried]]


def search(
    space: SearchSpace,
    objectives: Sequence[Objective],
    trials: int,
    seed: int,
    folder: Path,
    usual: Tried,
    try_out: TryOut,
    on_trial: Callable[[int, int], None] | None = None,
) -> list[Trial]:
    """Go on until there are so many trials; returns all of them."""
    import optuna

    with _quietly():
        study = _study(folder / STUDY, len(objectives))
        if not study.trials and (params := space.usual()) is not None:
            study.enqueue_trial(params)
        earlier = [trial for trial in study.trials if trial.state.is_finished() and _SETTINGS in trial.user_attrs]
        tried = dict(zip([trial.number for trial in earlier], try_out([trial.user_attrs[_SETTINGS] for trial in earlier])))
        while asked := _asked(study, space, trials, seed):
            found = try_out(list(asked.values()))
            tried |= zip(asked, found)
            for number, one in zip(asked, found):
                scores = None if one.failure else list(scores_of(objectives, one.values, usual.values))
                study.tell(number, scores, state=None if scores else optuna.trial.TrialState.FAIL)
            if on_trial is not None:
                on_trial(len(tried), trials)
    return [
        Trial(number, one, () if one.failure else scores_of(objectives, one.values, usual.values)) for number, one in sorted(tried.items())
    ]


def scores_of(objectives: Sequence[Objective], values: Mapping[str, Values], reference: Mapping[str, Values]) -> tuple[float, ...]:
    """The mean over workloads of each objective, in proportion to other settings on the same workload."""
    return tuple(sum(objective.proportion(own, reference[name]) for name, own in values.items()) / len(values) for objective in objectives)


def _asked(study: Study, space: SearchSpace, trials: int, seed: int) -> dict[int, Mapping[str, str]]:
    """The settings of the trials that have no result yet, by number: those that an earlier command left open, or the next batch."""
    import optuna

    left = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.RUNNING]
    for trial in left:
        if _SETTINGS not in trial.user_attrs:  # stopped while it was proposed
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    found: dict[int, Mapping[str, str]] = {trial.number: trial.user_attrs[_SETTINGS] for trial in left if _SETTINGS in trial.user_attrs}
    if found:
        return found
    there = sum(trial.state != optuna.trial.TrialState.WAITING for trial in study.trials)
    for number in range(there, min(trials, (there // BATCH + 1) * BATCH)):
        study.sampler = optuna.samplers.TPESampler(seed=(seed * 1_000_003 + number) % 2**32, multivariate=True, constant_liar=True)
        proposed = study.ask()
        found[proposed.number] = space.draw(proposed)
        proposed.set_user_attr(_SETTINGS, found[proposed.number])
    return found


def _study(file: Path, objectives: int) -> Study:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    try:
        storage = JournalStorage(JournalFileBackend(str(file)))
        return optuna.create_study(storage=storage, study_name="tuning", directions=["minimize"] * objectives, load_if_exists=True)
    except Exception as error:  # whatever Optuna makes of a damaged file
        raise RefusedError(f"the search cannot be gone on with: {error}", where=str(file), fix="choose another --out") from None


@contextmanager
def _quietly() -> Iterator[None]:
    """Without Optuna's own lines about each trial and about what it calls experimental."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


def check_optuna() -> None:
    """Refuse before anything runs where Optuna is not installed."""
    try:
        import optuna  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "optuna":
            raise
        raise UsageError("tuning needs optuna", fix="pip install 'gantline[tune]'") from None
