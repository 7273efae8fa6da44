"""A comparison in words: who beats whom by how much, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gantline.experiment.bootstrap import Interval
from gantline.report.metrics import BY_KEY


@dataclass(frozen=True)
class Difference:
    """How a metric changes from one policy to another: `change` is relative, 0.1 means ten percent more."""

    policy: str
    against: str
    metric: str
    value: float
    value_against: float
    change: Interval
    over: str
    """What was resampled: `seeds` (other jobs), `draws` (other draws on the same jobs), `jobs`, or nothing."""
    lowest: float = math.nan
    highest: float = math.nan
    """The extreme changes of single seeds."""
    doubts: str = ""
    """What speaks against the runs of either."""
    copies: int = 1
    """How many seeds gave one and the same run."""
    uneven: str = ""
    """That one completed fewer jobs than the other, where it did."""

    @property
    def sign(self) -> int:
        """1: better, -1: worse, 0: the interval holds zero (or nothing changes), it is not known, or the runs are in doubt."""
        if self.doubts:
            return 0
        bounds = (self.change.low, self.change.high) if self.change.known else (self.lowest, self.highest)
        if any(math.isnan(bound) for bound in bounds):
            bounds = (self.change.value, self.change.value)
        if bounds[0] <= 0 <= bounds[1] or any(map(math.isnan, bounds)):
            return 0
        more_is_better = BY_KEY[self.metric].better == "higher"
        return 1 if (bounds[0] > 0) == more_is_better else -1


def verdict(differences: Sequence[Difference]) -> str:
    """One sentence on a policy: what it wins, what it loses, where there is no clear difference."""
    known = [difference for difference in differences if math.isfinite(difference.change.value)]
    if not known:
        first = differences[0]
        why = f", because of doubts: {first.doubts}" if first.doubts else ": no metric is known for both"
        return f"{first.policy} and {first.against} cannot be compared{why}."
    if known[0].doubts:
        changes = ", ".join(f"{_lower(BY_KEY[item.metric].title)} {100 * item.change.value:+.0f} %" for item in known)
        return f"{known[0].policy} against {known[0].against} decides nothing ({changes}), because of doubts: {known[0].doubts}."
    parts, previous = [], None
    some = any(map(_spread, known))
    for sign in (1, -1, 0):
        for difference in known:
            if difference.sign == sign:
                parts.append(_part(difference, sign, first=previous is None, same=previous == sign, some=some))
                previous = sign
    return f"{known[0].policy} {'; '.join(parts)} ({basis(known)}).{known[0].uneven}"


def basis(differences: Sequence[Difference]) -> str:
    """What the intervals rest on."""
    over = {difference.over for difference in differences}
    samples = max(difference.change.samples for difference in differences)
    enough = any(difference.change.known for difference in differences)
    if "seeds" in over:
        return f"over {samples} seeds" if enough else f"the range of {samples} seeds, too few for an interval"
    if "draws" in over:
        drawn = f"{samples} seeds of what is drawn in a run, the jobs being the same"
        return f"over {drawn}" if enough else f"the range of {drawn}, too few for an interval"
    copies = max(difference.copies for difference in differences)
    one = f"one run, which {copies} seeds repeat because nothing in it is random" if copies > 1 else "one run"
    if "jobs" in over:
        return f"{one}; intervals over its {samples:,} jobs, which says nothing about other traces"
    return f"{one}, without intervals"


def _part(difference: Difference, sign: int, *, first: bool, same: bool, some: bool) -> str:
    """Where `some` have an interval, those without one say so."""
    title, other = _lower(BY_KEY[difference.metric].title), difference.against
    if sign != 0:
        act = f"{'beats' if sign > 0 else 'loses to'} {other} by " if first else "" if same else "beats it by " if sign > 0 else "loses "
        interval = _interval(difference) or (", no interval" if some else "")
        return f"{act}{_percent(abs(difference.change.value))} {title}{interval}"
    if _spread(difference):
        words = f"shows no clear difference to {other} in" if first else "no clear difference in"
        return f"{words} {title} ({_bounds(difference, signed=True)})"
    return f"has the same {title} as {other}" if first else f"the same {title}"


def _spread(difference: Difference) -> bool:
    low, high = _ends(difference)
    return math.isfinite(low) and high > low


def _ends(difference: Difference) -> tuple[float, float]:
    return (difference.change.low, difference.change.high) if difference.change.known else (difference.lowest, difference.highest)


def _interval(difference: Difference) -> str:
    if not math.isfinite(_ends(difference)[0]):
        return ""
    if not difference.change.known:
        return f", {_bounds(difference)} on single seeds"
    return f", {100 * difference.change.confidence:.0f} % interval {_bounds(difference)}"


def _bounds(difference: Difference, signed: bool = False) -> str:
    low, high = _ends(difference)
    if not signed and high < 0:
        low, high = -high, -low
    digits = _digits(max(abs(low), abs(high)))
    while digits < 3 and low and round(100 * low, digits) == 0:  # an end that is not zero is not told as zero
        digits += 1
    return f"{100 * low:{'+' if signed else ''}.{digits}f}..{100 * high:{'+' if signed else ''}.{digits}f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.{_digits(share)}f} %"


def _digits(share: float) -> int:
    return 0 if share >= 0.1 else 1 if share >= 0.01 else 2


def _lower(title: str) -> str:
    """A title inside a sentence; abbreviations keep their capitals."""
    first = title.split(" ")[0]
    return title if first.isupper() else title[:1].lower() + title[1:]
