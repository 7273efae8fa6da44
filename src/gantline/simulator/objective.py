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

import numpy as np

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import RefusedError, UsageError, near
from gantline.simulator.areas import mean_present


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

    def of(self, run: Answers, reference: Answers | None = None) -> float:
        """The score of a run; less is better. A sum is in proportion to the run ``beside`` it."""
        return self.score(self.values(run), None if reference is None else self.values(reference))

    def score(self, values: Mapping[str, float], reference: Mapping[str, float] | None = None) -> float:
        """The same from values that are known already."""
        if not self.is_sum:
            return values[self.words[0]]
        if reference is None:
            raise ValueError(f"a score of '{self}' is in proportion to another run, and none is given")
        return sum(weight * values[word] / max(reference[word], WORDS[word].least) for word, weight in self.terms)

    def proportion(self, values: Mapping[str, float], reference: Mapping[str, float]) -> float:
        """How large a run is beside another: 1 is as large, 0.8 a fifth less; of a sum, the mean by weight."""
        total = sum(weight for _, weight in self.terms)
        return sum(weight * values[word] / max(reference[word], WORDS[word].least) for word, weight in self.terms) / total

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


@dataclass(frozen=True)
class Ended:
    """What became of jobs: enough to say how well a run, or a future that was rolled out, went. One entry per job.

    A job that is still there when the run ends counts as if it completed at that moment: less would reward leaving jobs behind. Jobs
    that failed, were cancelled or turned away have no completion time, and have missed their deadlines. With every job completed the
    values are those of the metrics of a run (``docs/metrics.md``).

    ``finish`` is NaN or infinite for a job that has not completed, ``first_start`` for one that never started."""

    arrival: Floats
    first_start: Floats
    finish: Floats
    duration: Floats  # run time with the devices that the job asked for
    gpus: Floats  # that it asked for
    end: float  # of the run, or the horizon of a future
    devices: float  # GPUs of the cluster
    deadline: Floats | None = None  # NaN for jobs without one
    lost: Bools | None = None  # failed, cancelled or turned away
    counted: Bools | None = None  # the jobs that count, where others only ran beside them
    met: Bools | None = None  # deadlines, where the run judged them itself
    dollars: float = math.nan
    kwh: float = math.nan

    def value(self, word: str) -> float:
        """The value of one of the words of an objective; lower is better, NaN where the columns cannot say."""
        found: float = getattr(self, "_" + word.replace("-", "_"))()
        return found

    @property
    def _gone(self) -> Floats:
        return np.where(np.isfinite(self.finish), self.finish, np.maximum(self.end, self.arrival))

    @property
    def _chosen(self) -> Bools:
        return np.ones(len(self.arrival), dtype=bool) if self.counted is None else self.counted

    @property
    def _kept(self) -> Bools:
        """The jobs that count and were not lost."""
        return self._chosen if self.lost is None else self._chosen & ~self.lost

    @property
    def _jct(self) -> Floats:
        return (self._gone - self.arrival)[self._kept]

    def _mean_jct(self) -> float:
        jct = self._jct
        return float(jct.mean()) if jct.size else math.nan

    def _p95_jct(self) -> float:
        jct = self._jct
        return float(np.quantile(jct, 0.95)) if jct.size else math.nan

    def _responsiveness(self) -> float:
        started = np.where(np.isfinite(self.first_start), self.first_start, self._gone)
        waited = (started - self.arrival)[self._kept]
        return float(waited.mean()) if waited.size else math.nan

    def _makespan(self) -> float:
        kept = self._kept
        return float(self._gone[kept].max() - self.arrival[self._chosen].min()) if kept.any() else math.nan

    def _worst_rho(self) -> float:
        """Finish-time fairness by ``share``: completion time over that in an equal part of the cluster."""
        kept, gone = self._kept & (self.duration > 0), self._gone
        if not kept.any() or self.devices <= 0:
            return math.nan
        there = np.ones(len(gone), dtype=bool) if self.lost is None else ~self.lost | np.isfinite(self.finish)
        present = mean_present(self.arrival[there], gone[there], self.arrival[kept], gone[kept])
        ideal = self.duration[kept] * np.maximum(1.0, self.gpus[kept] * present / self.devices)
        return float(((gone - self.arrival)[kept] / ideal).max())

    def _deadlines(self) -> float:
        """The share of deadlines that were missed, of those met or missed; one that lies beyond the end is open."""
        if self.deadline is None:
            return math.nan
        due = self._chosen & np.isfinite(self.deadline)
        done = np.isfinite(self.finish) if self.lost is None else np.isfinite(self.finish) & ~self.lost
        in_time = self.finish <= self.deadline if self.met is None else self.met
        lost = np.zeros(len(due), dtype=bool) if self.lost is None else self.lost
        missed = np.where(done, ~in_time, lost | (self.deadline < self.end))
        judged = due & (done | missed)
        return float(missed[judged].mean()) if judged.any() else math.nan

    def _dollars(self) -> float:
        return self.dollars

    def _kwh(self) -> float:
        return self.kwh
