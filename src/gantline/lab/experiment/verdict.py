"""A comparison in words: which policy beats which by how much, how sure that is, and how many seeds would decide more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gantline.lab.experiment.difference import Difference
from gantline.lab.experiment.intervals import fewest_samples
from gantline.lab.experiment.significance import MOST_SEEDS
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
