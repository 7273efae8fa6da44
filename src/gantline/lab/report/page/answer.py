"""The top of a page: the answer, and below it one line, which unfolds, with all reasons to doubt it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

from gantline.lab.report.figures.panels import brief
from gantline.lab.report.frames import RunLike
from gantline.lab.report.labels import spell, spellers
from gantline.lab.report.metrics import BY_KEY, METRICS, steadiness
from gantline.lab.report.run_warnings import (
    UNSTEADY,
    free_stops,
    links_apart,
    no_contest,
    policies_in_charge,
    turned_away,
    ways_left_out,
    wholes_for_parts,
)

_LINE = 110  # letters of the first doubt that stand in the folded line


def answer(names: Sequence[str], measures: Sequence[Mapping[str, float]], doubtful: Collection[int]) -> str:
    """Which run is best, or the result of a single run, or why none is best."""
    if len(names) == 1:
        return _one(names[0], measures[0])
    sentence = headline(names, measures, doubtful)
    if sentence:
        return sentence
    fit = [index for index in range(len(names)) if index not in doubtful]
    return (
        f"Only {_one(names[fit[0]], measures[fit[0]])} The others are in doubt."
        if fit
        else "Every run is in doubt, so that none is called best."
    )


def _one(name: str, found: Mapping[str, float]) -> str:
    parts = [f"{title} {spell(BY_KEY[key], found[key])}" for key, title in _TOLD]
    return f"{name}: {', '.join(parts)} ({found['completed']:,.0f} of {found['jobs']:,.0f} jobs completed)."


_TOLD = (("jct_mean", "mean JCT"), ("jct_p95", "95th percentile"), ("utilization", "utilization"))


def folded(doubts: Sequence[str], notes: Sequence[str]) -> list[str]:
    """Doubts and notes in one line that unfolds; nothing where there are none."""
    if not doubts and not notes:
        return []
    counted = [f"{len(texts)} {word}{'s' if len(texts) > 1 else ''}" for texts, word in ((doubts, "doubt"), (notes, "note")) if texts]
    first = brief((*doubts, *notes)[0], _LINE)
    listed = "".join(f'<li class="{kind}">{escape(text)}</li>' for kind, texts in (("doubt", doubts), ("note", notes)) for text in texts)
    opening = f"<summary>{escape(' and '.join(counted))}: {escape(first)}</summary>"
    return [f'<details class="doubts{" grave" if doubts else ""}">{opening}<ul>{listed}</ul></details>']


def doubts_about(names: Sequence[str], runs: Sequence[RunLike], doubts: Sequence[Sequence[str]]) -> list[str]:
    """A sentence for every reason to doubt the numbers, with the runs that it concerns."""
    runs_by_doubt: dict[str, list[str]] = {}
    for name, run, own in zip(names, runs, doubts):
        guard = steadiness(run)
        for one in [one for one in own if one != UNSTEADY] + ([] if guard.steady else [str(guard)]):
            runs_by_doubt.setdefault(one, []).append(name)
    return [f"{', '.join(own)}: {one}" if len(runs) > 1 else one for one, own in runs_by_doubt.items()]


def uneven(measures: Sequence[Mapping[str, float]]) -> list[str]:
    """That runs completed different numbers of jobs, where they did."""
    different = len({found["completed"] for found in measures}) > 1
    return ["The runs completed different numbers of jobs: compare their means with care."] if different else []


def notes_about(names: Sequence[str], runs: Sequence[RunLike]) -> list[str]:
    """What is no doubt, but should be mentioned."""
    remarks = (free_stops, wholes_for_parts, ways_left_out, links_apart, turned_away, no_contest)
    notes = [(name, remark(run.summary)) for remark in remarks for name, run in zip(names, runs)]
    notes += [(name, policies_in_charge(run)) for name, run in zip(names, runs)]
    return [f"{name}: {text}." if len(runs) > 1 else f"{text}." for name, text in notes if text]


# The headline of a page of runs: which has the lowest mean completion time of the jobs that count, and by how much.
#
# It is about one trace, so these are numbers without an interval: a run does not show what another trace would have given.

_JCT = [metric for metric in METRICS if metric.key.startswith("jct_")]  # the table writes them in one unit, and so does the headline
ONE_TRACE = "One trace decides nothing about others: gantline compare runs several seeds"


def headline(names: Sequence[str], measures: Sequence[Mapping[str, float]], doubtful: Collection[int]) -> str:
    """The lowest mean completion time, against the first run (or, if that is it, the second lowest)."""
    fit = [index for index in range(len(names)) if index not in doubtful and math.isfinite(measures[index]["jct_mean"])]
    if len(fit) < 2:
        return ""
    order = sorted(fit, key=lambda index: measures[index]["jct_mean"])
    best, other = order[0], order[1] if order[0] == fit[0] else fit[0]
    low, high = (measures[index]["jct_mean"] for index in (best, other))
    jobs = f"{measures[best]['completed']:,.0f} jobs"
    write = spellers(_JCT, {metric.key: [found.get(metric.key, math.nan) for found in measures] for metric in _JCT})["jct_mean"]
    if low == high:
        return f"{names[best]} and {names[other]} have the same mean JCT, {write(low)} ({jobs}). {ONE_TRACE}."
    change = f"{100 * (1 - low / high):.{1 if low > 0.9 * high else 0}f} % below {names[other]}"
    return f"{names[best]} has the lowest mean JCT of these runs, {write(low)}: {change} ({jobs}). {ONE_TRACE}."
