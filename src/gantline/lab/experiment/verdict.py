"""A comparison in words: which policy beats which by how much, how sure that is, and how many seeds would decide more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gantline.lab.experiment.intervals import MOST_SEEDS, Interval, fewest_samples, holm, seeds_needed
from gantline.lab.report.metrics import BY_KEY


def verdict(differences: Sequence[Difference]) -> str:
    """What is said of one policy: what it wins, what it loses, where there is no clear difference; numbers alone without an interval."""
    first = differences[0]
    known = [difference for difference in differences if math.isfinite(difference.change.value)]
    if not known:
        why = f", because of doubts: {_doubts(first)}" if first.doubtful else ": no metric is known for both"
        return f"{first.policy} and {first.against} cannot be compared{why}."
    if known[0].doubtful:
        return f"{first.policy} against {first.against} decides nothing ({_numbers(known)}), because of doubts: {_doubts(known[0])}."
    if not any(difference.change.known for difference in known):
        return f"{first.policy} against {first.against} {_one_run(known)}: {_numbers(known)}. {_too_few(known)}{known[0].uneven}"
    parts: list[str] = []
    previous = None
    for sign in (1, -1, 0):
        for difference in known:
            if difference.sign == sign:
                parts.append(_part(difference, sign, first=previous is None, same=previous == sign))
                previous = sign
    return f"{first.policy} {'; '.join(parts)} ({basis(known)}).{_more_seeds(known)}{known[0].uneven}"


def basis(differences: Sequence[Difference]) -> str:
    """What the intervals are over, and for how many comparisons they are corrected."""
    one = max(differences, key=lambda difference: difference.change.samples)
    text = f"over {one.change.samples} seeds"
    if one.over == "draws":
        text += " of what is drawn in a run, the jobs being the same"
    if one.load is not None:
        text += f", each stretched to a load of {one.load:g}, so that they differ less than seeds whose load is drawn too"
    return text + (f"; tested together with all {one.comparisons} comparisons of the table" if one.comparisons > 1 else "")


def _doubts(difference: Difference) -> str:
    sides = ((difference.against, difference.doubts_against), (difference.policy, difference.doubts))
    return "; ".join(f"{name}: {doubt}" for name, doubt in sides if doubt)


def _numbers(differences: Sequence[Difference]) -> str:
    return ", ".join(f"{_title(one)} {_signed(one.change.value)}" for one in differences)


def _one_run(differences: Sequence[Difference]) -> str:
    one = differences[0]
    if one.over:
        return f"over {one.change.samples} seeds"
    return f"in one run, which {one.copies} seeds repeat because nothing in it is random" if one.copies > 1 else "in one run"


def _too_few(differences: Sequence[Difference]) -> str:
    """The sentence that nothing is decided, and how many seeds would decide."""
    one = differences[0]
    fewest = fewest_samples(one.change.confidence)
    level = f"{100 * one.change.confidence:g} % interval"
    open_changes = [difference for difference in differences if math.isfinite(difference.spread) and difference.change.value]
    what = "seeds" if one.over else "seeds, or traces like this one,"
    if not open_changes:
        return f"That decides nothing: a {level} needs {fewest} {what} at least."
    judged = "as the seeds so far vary" if one.over else "as the stretches of this run vary"
    return f"That decides nothing: a {level} needs {fewest} {what} at least, and {_needed(open_changes[0])}, {judged}."


def _more_seeds(differences: Sequence[Difference]) -> str:
    """How many seeds would decide the first change that is not clear."""
    unclear = [one for one in differences if one.sign == 0 and one.change.value and math.isfinite(one.spread) and one.spread > 0]
    return f" It needs more seeds: {_needed(unclear[0])}." if unclear else ""


def _needed(one: Difference) -> str:
    count = f"about {one.needed}" if one.needed is not None else f"more than {MOST_SEEDS:,}"
    return f"{count} to tell a change of {_title(one)} by {_signed(one.change.value)} from chance"


def _part(difference: Difference, sign: int, *, first: bool, same: bool) -> str:
    title, other = _title(difference), difference.against
    if sign != 0:
        act = f"{'beats' if sign > 0 else 'loses to'} {other} by " if first else "" if same else "beats it by " if sign > 0 else "loses "
        level = f"{100 * difference.change.confidence:g} % interval"
        return f"{act}{_percent(abs(difference.change.value))} {title}, {level} {_bounds(difference)}"
    if difference.change.known and difference.change.high > difference.change.low:
        words = f"shows no clear difference to {other} in" if first else "no clear difference in"
        return f"{words} {title} ({_bounds(difference, signed=True)})"
    if not difference.change.value:
        return f"has the same {title} as {other}" if first else f"the same {title}"
    return f"{'against ' + other + ' ' if first else ''}{title} {_signed(difference.change.value)} without an interval"


def _bounds(difference: Difference, signed: bool = False) -> str:
    low, high = difference.change.low, difference.change.high
    if not signed and high < 0:
        low, high = -high, -low
    digits = _digits(max(abs(low), abs(high)))
    while digits < 3 and low and round(100 * low, digits) == 0:  # an end that is not zero is not shown as zero
        digits += 1
    return f"{100 * low:{'+' if signed else ''}.{digits}f}..{100 * high:{'+' if signed else ''}.{digits}f} %"


def _signed(change: float) -> str:
    return f"{100 * change:+.{_digits(abs(change))}f} %" if change else "the same"


def _percent(share: float) -> str:
    return f"{100 * share:.{_digits(share)}f} %"


def _digits(share: float) -> int:
    return 0 if share >= 0.1 else 1 if share >= 0.01 else 2


def _title(difference: Difference) -> str:
    """The metric inside a sentence; abbreviations keep their capitals."""
    title = BY_KEY[difference.metric].title
    return title if title.split(" ")[0].isupper() else title[:1].lower() + title[1:]


# How a metric changes from one policy to another, and whether that is more than chance in a table of many comparisons.

Over = Literal["seeds", "draws", ""]
"""What the interval is over: seeds that draw other jobs, draws on the same jobs, or nothing, because there is one run."""


@dataclass(frozen=True)
class Difference:
    """`change` is relative: 0.1 means ten percent more than under the policy it is compared with."""

    policy: str
    against: str
    metric: str
    value: float
    value_against: float
    change: Interval
    over: Over = ""
    p: float = math.nan
    """Holm's p-value: it holds for the whole table. NaN where there is no interval."""
    comparisons: int = 1
    """How many comparisons the table makes."""
    spread: float = math.nan
    """The standard deviation of the change from seed to seed; of one run, estimated from its stretches."""
    doubts: str = ""
    """Doubts about the runs of the policy."""
    doubts_against: str = ""
    """The same of the policy it is compared with."""
    copies: int = 1
    """How many seeds gave one and the same run."""
    uneven: str = ""
    """A note if one completed fewer jobs than the other."""
    load: float | None = None
    """The load that every seed is stretched to, where the generator does so."""

    @property
    def doubtful(self) -> bool:
        """Whether the runs of either are in doubt."""
        return bool(self.doubts or self.doubts_against)

    @property
    def sign(self) -> int:
        """1: better, -1: worse; 0: undecided, because of doubts, of chance, or because there is no interval."""
        change = self.change
        if self.doubtful or not change.known or not self.p < 1.0 - change.confidence or change.low <= 0 <= change.high:
            return 0
        return 1 if (change.value > 0) == (BY_KEY[self.metric].better == "higher") else -1

    @property
    def needed(self) -> int | None:
        """How many seeds would detect a change of this size in this table; None where more than a thousand would not."""
        return seeds_needed(self.change.value, self.spread, self.change.confidence, self.comparisons)


def judged_together(tables: Sequence[Sequence[Difference]]) -> list[tuple[Difference, ...]]:
    """The same differences, each with a p-value that counts how many comparisons all the tables make."""
    everything = [one for table in tables for one in table]
    together = iter(holm([one.change.p if one.over else math.nan for one in everything]))
    return [tuple(replace(one, p=next(together), comparisons=len(everything)) for one in table) for table in tables]
