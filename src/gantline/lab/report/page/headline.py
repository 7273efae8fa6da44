"""The headline of a page of runs: which has the lowest mean completion time of the jobs that count, and by how much.

It is about one trace, so these are numbers without an interval: a run does not show what another trace would have given.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from gantline.lab.report.metrics import METRICS
from gantline.lab.report.numbers import spellers

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
