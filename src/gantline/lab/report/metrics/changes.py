"""How often gangs were resized and moved, and how many jobs spanned nodes and racks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gantline.core.arrays import Bools, Ints
from gantline.core.reasons import Reason
from gantline.simulator.run_columns import SpanColumns


def resizes(spans: SpanColumns, counted: Bools) -> int:
    """Times that a running gang was given another number of devices."""
    return int(((spans.reason == Reason.RESIZED) & counted).sum())


def migrations(spans: SpanColumns, counted: Bools) -> int:
    """Times that a running gang went on with other devices."""
    return int(((spans.reason == Reason.MOVED) & counted).sum())


def cross_node(spans: SpanColumns, counted: Bools) -> float:
    """The part of the jobs that ran which ever spanned more than one node; NaN: none ran."""
    return _share(spans, counted, spans.nodes)


def cross_rack(spans: SpanColumns, counted: Bools, racks: Sequence[int]) -> float:
    """The same for racks, by the rack of each node (none: there is one, or it is unknown); nodes that joined later stand by themselves."""
    if not racks:
        return math.nan
    known = spans.nodes < len(racks)
    return _share(spans, counted, np.where(known, np.asarray(racks)[np.where(known, spans.nodes, 0)], -1 - spans.nodes))


def _share(spans: SpanColumns, counted: Bools, places: Ints) -> float:
    """Of the jobs with intervals that count, those with one in more than one of the places."""
    seated = counted & (np.diff(spans.first_node) > 0)
    wide = np.zeros(len(spans), dtype=bool)
    if seated.any():
        first, last = spans.first_node[:-1][seated], spans.first_node[1:][seated]
        ends = np.column_stack([first, last]).ravel()
        bounded = np.append(places, places[-1:])  # the last gang ends where the list does
        least, most = (across.reduceat(bounded, ends)[::2] for across in (np.minimum, np.maximum))
        wide[seated] = least < most
    ran, spread = (np.zeros(spans.row.max(initial=-1) + 2, dtype=bool) for _ in range(2))
    ran[spans.row[counted]], spread[spans.row[wide]] = True, True
    return float(spread.sum() / ran.sum()) if ran.any() else math.nan
