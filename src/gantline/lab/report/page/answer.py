"""The top of a page: the answer, and below it one line, which unfolds, with all reasons to doubt it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from gantline.lab.report.doubts import UNSTEADY, free_stops, links_apart, no_contest, turned_away, ways_left_out, wholes_for_parts
from gantline.lab.report.figures.panels import brief
from gantline.lab.report.frames import RunLike
from gantline.lab.report.in_charge import policies_in_charge
from gantline.lab.report.metrics import BY_KEY, steadiness
from gantline.lab.report.numbers import spell
from gantline.lab.report.page.headline import headline

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
