"""What a run is to be good at, in words: ``mean-jct``, ``worst-rho``, or a weighted sum such as ``0.7*mean-jct+0.3*worst-rho``.

Every word names a value of which less is better. One word is that value, in its own unit. The terms of a sum have different units, so
each is taken in proportion to its value in a run to compare with (the settings as they are, the policy in charge): the weights then say
how much each matters, and the run that is compared with scores the sum of the weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from gantline.core.errors import RefusedError, UsageError, near


@dataclass(frozen=True)
class Word:
    """A value that can be made small: how it is shown, and the least that others are measured in proportion to."""

    title: str
    unit: str
    metric: str  # its key among the metrics of a run
    least: float
    needs: str = ""  # why a run cannot say
    remedy: str = ""


WORDS: dict[str, Word] = {
    "mean-jct": Word("mean JCT", "s", "jct_mean", 1.0, "no job completes"),
    "p95-jct": Word("95th percentile of JCT", "s", "jct_p95", 1.0, "no job completes"),
    "responsiveness": Word("mean time to the first start", "s", "responsiveness_mean", 1.0, "no job starts"),
    "worst-rho": Word("worst rho (share)", "", "rho_max", 0.1, "no job completes"),
    "deadlines": Word("deadlines missed", "share", "deadline_satisfaction", 0.01, "no job has a deadline", "give jobs a deadline"),
    "makespan": Word("makespan", "s", "makespan", 1.0, "no job completes"),
    "dollars": Word("cost", "dollars", "money", 0.01, "the devices have no prices", "give --prices"),
    "kwh": Word("energy", "kWh", "energy", 0.01, "the power of the devices is not known", "give --power"),
}


class Answers(Protocol):
    """What an objective is asked of: a run, or a future (`core.outcomes`)."""

    def value(self, word: str) -> float:
        """The value of a word; NaN where that cannot be said."""


@dataclass(frozen=True)
class Objective:
    """A weighted sum of words, or one word alone."""

    terms: tuple[tuple[str, float], ...]

    @classmethod
    def parse(cls, text: str, where: str = "objective") -> Objective:
        """An objective as people write it."""
        found: dict[str, float] = {}
        for part in text.split("+") if text.strip() else []:
            weight, word = _term(part.strip(), where)
            if word in found:
                raise UsageError(f"'{word}' stands twice", where=where, fix="add the weights and name it once")
            found[word] = weight
        if not found:
            fix = f"choose from {', '.join(WORDS)}, or a sum such as 0.7*mean-jct+0.3*worst-rho"
            raise UsageError("names nothing", where=where, fix=fix)
        if len(found) == 1 and "*" in text:
            raise UsageError(f"a weight of '{word}' alone weighs it against nothing", where=where, fix=f"write {word}")
        return cls(tuple(found.items()))

    @property
    def words(self) -> tuple[str, ...]:
        """What must be known of a run."""
        return tuple(word for word, _ in self.terms)

    @property
    def is_sum(self) -> bool:
        """Whether a score is in proportion to another run."""
        return len(self.terms) > 1

    @property
    def title(self) -> str:
        """How axes and tables call it."""
        if self.is_sum:
            return str(self)
        word = WORDS[self.words[0]]
        return f"{word.title} ({word.unit})" if word.unit else word.title

    def values(self, run: Answers) -> dict[str, float]:
        """The value of every word; a run that cannot say is refused with the reason."""
        found = {word: run.value(word) for word in self.words}
        for word, value in found.items():
            if not math.isfinite(value):
                known = WORDS[word]
                raise RefusedError(f"'{word}' cannot be answered: {known.needs}", where="objective", fix=known.remedy)
        return found

    def of(self, run: Answers, beside: Answers | None = None) -> float:
        """The score of a run; less is better. A sum is in proportion to the run ``beside`` it."""
        return self.score(self.values(run), None if beside is None else self.values(beside))

    def score(self, values: Mapping[str, float], beside: Mapping[str, float] | None = None) -> float:
        """The same from values that are known already."""
        if not self.is_sum:
            return values[self.words[0]]
        if beside is None:
            raise ValueError(f"a score of '{self}' is in proportion to another run, and none is given")
        return sum(weight * values[word] / max(beside[word], WORDS[word].least) for word, weight in self.terms)

    def proportion(self, values: Mapping[str, float], beside: Mapping[str, float]) -> float:
        """How large a run is beside another: 1 is as large, 0.8 a fifth less; of a sum, the mean by weight."""
        total = sum(weight for _, weight in self.terms)
        return sum(weight * values[word] / max(beside[word], WORDS[word].least) for word, weight in self.terms) / total

    def __str__(self) -> str:
        if not self.is_sum:
            return self.words[0]
        return "+".join(word if weight == 1.0 else f"{weight:g}*{word}" for word, weight in self.terms)


def parse_objectives(text: str, where: str = "objective") -> tuple[Objective, ...]:
    """Several objectives with commas between them: none of them is to be bought with another."""
    found = tuple(Objective.parse(part, where) for part in text.split(",")) if text.strip() else (Objective.parse(text, where),)
    if len({str(one) for one in found}) < len(found):
        raise UsageError(f"'{text}' names one objective twice", where=where, fix="give each once")
    return found


def _term(part: str, where: str) -> tuple[float, str]:
    number, star, word = part.rpartition("*")
    word = word.strip()
    if word not in WORDS:
        raise UsageError(f"no objective '{word}'", where=where, fix=near(word, WORDS))
    try:
        weight = float(number) if star else 1.0
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight > 0.0):
        raise UsageError(f"the weight '{number.strip()}' of '{word}' is not a number above 0", where=where, fix="write 0.7*mean-jct")
    return weight, word
