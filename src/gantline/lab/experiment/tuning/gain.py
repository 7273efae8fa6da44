"""What tuning gained, in words: on the workloads that were held back, with an interval, and beside it on those the search has seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gantline.core.objective import WORDS, Objective
from gantline.lab.experiment.intervals import Interval, fewest_samples, mean_interval
from gantline.lab.experiment.tuning.trials import Values


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
