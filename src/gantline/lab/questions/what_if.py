"""The present queue under another policy, with more devices or without a node: both futures from the same draws, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.fields import human_seconds
from gantline.core.inputs import Input, NodeEvent
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.futures import Rolled
from gantline.lab.questions.forecast import NINE_TENTHS, Setup

METRICS = {
    "jct_mean": "mean time from submission to end",
    "wait_mean": "mean time until the jobs that wait now start",
    "makespan": "time until all have ended",
}


_NO_SPAN = (math.nan, math.nan)


@dataclass(frozen=True)
class Contrast:
    """One metric under both futures: means over the draws, and the middle nine tenths of the relative change of single draws."""

    metric: str
    present: float
    other: float
    change: float  # of the means, relative; below zero: less time
    low: float
    high: float
    present_low: float = math.nan  # the middle nine tenths of the draws of each future, where times and speeds are drawn, too
    present_high: float = math.nan
    other_low: float = math.nan
    other_high: float = math.nan

    def __str__(self) -> str:
        now, then = _with_span(self.present, self.present_low, self.present_high), _with_span(self.other, self.other_low, self.other_high)
        value = f"{METRICS.get(self.metric, self.metric)}: {now} now, {then} then"
        return (
            value if math.isnan(self.change) else f"{value} ({100 * self.change:+.0f} %, {100 * self.low:+.0f} to {100 * self.high:+.0f} %)"
        )


@dataclass(frozen=True)
class WhatIf:
    """Two futures of the same jobs. `open` counts jobs that did not end within the horizon in some draw; `over` is what varies."""

    present: str
    other: str
    jobs: int
    samples: int
    over: str
    differences: tuple[Contrast, ...]
    open: int = 0
    later: tuple[str, ...] = ()  # jobs that end later in the median
    windows: tuple[str, ...] = ()  # what is reserved, in both futures

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The answer as sentences."""
        lines = [f"{self.jobs} jobs, {self.samples} draws of {self.over}: {self.other} in place of {self.present}"]
        lines += [str(one) for one in self.differences]
        if self.later:
            more = f" and {len(self.later) - 5} more" if len(self.later) > 5 else ""
            lines.append(f"would end later: {', '.join(self.later[:5])}{more}")
        lines += [f"note: {window}" for window in self.windows]
        if self.open:
            lines.append(f"note: {self.open} jobs had not ended at the horizon in some draw; their times count up to it")
        return lines


def what_if(
    snapshot: Snapshot,
    present: Policy,
    other: Policy | None = None,
    *,
    add: str = "",
    lose: Sequence[str] = (),
    setup: Setup | None = None,
    names: Mapping[str, str] | None = None,
) -> WhatIf:
    """The queue as it goes on, and as it would under `other` (default: the same policy), with nodes added (such as 1x4) or lost."""
    setup = (setup or Setup()).at(snapshot)
    if other is None and not add and not lose:
        raise UsageError("nothing is different", where="what-if", fix="name another policy, nodes to add or nodes to lose")
    inputs = _nodes(snapshot, add, lose)
    then = present if other is None else other
    here = list(setup.futures(snapshot, present))
    there = list(setup.futures(snapshot if other is None else replace(snapshot, memory=None), then, inputs))
    here, there = here[: len(there)], there[: len(here)]
    now_called = (names or {}).get("present", present.name or type(present).__name__)
    called = (names or {}).get("other", then.name or type(then).__name__)
    called += "".join([f" with {add} more" if add else "", f" without {', '.join(lose)}" if lose else ""])
    return _compare(snapshot, here, there, now_called, called, setup)


def _compare(snapshot: Snapshot, here: list[Rolled], there: list[Rolled], now_called: str, called: str, setup: Setup) -> WhatIf:
    end = snapshot.now + setup.horizon
    ids, shape = snapshot.jobs.ids, (len(here), len(snapshot.jobs))
    before, after = (np.array([np.minimum(one.finish, end) for one in runs]).reshape(shape) for runs in (here, there))
    differences = []
    for metric in METRICS:
        one, two = (_metric(metric, snapshot, runs, end) for runs in (here, there))
        with np.errstate(divide="ignore", invalid="ignore"):
            change = two / one - 1.0
            means = float(np.mean(two) / np.mean(one) - 1.0) if np.mean(one) > 0 else math.nan
        known = change[np.isfinite(change)]
        spans = [np.quantile(drawn, NINE_TENTHS).tolist() if len(drawn) else _NO_SPAN for drawn in (known, one, two)]
        (low, high), *each = spans if setup.has_spread else (spans[0], _NO_SPAN, _NO_SPAN)
        differences.append(Contrast(metric, float(np.mean(one)), float(np.mean(two)), means, low, high, *each[0], *each[1]))
    slower = np.median(after, axis=0) > np.median(before, axis=0) + 1e-6 if len(ids) else np.zeros(0, dtype=bool)
    unended = np.array([~np.isfinite(one.finish) for one in (*here, *there)]).reshape(len(here) + len(there), len(ids)).any(axis=0)
    later = tuple(ids[k] for k in np.flatnonzero(slower))
    windows = tuple(window.in_words(snapshot.now) for window in snapshot.windows)
    return WhatIf(now_called, called, len(ids), len(here), setup.over, tuple(differences), int(unended.sum()), later, windows)


def _with_span(mean: float, low: float, high: float) -> str:
    span = f" ({human_seconds(low)} to {human_seconds(high)})" if math.isfinite(low) else ""
    return f"{human_seconds(mean)}{span}"


def _metric(metric: str, snapshot: Snapshot, runs: list[Rolled], end: float) -> Floats:
    """One number per draw."""
    jobs, now = snapshot.jobs, snapshot.now
    if not len(jobs):
        return np.zeros(len(runs))
    if metric == "jct_mean":
        return np.array([np.mean(np.minimum(one.finish, end) - jobs.arrival) for one in runs])
    if metric == "makespan":
        return np.array([np.max(np.minimum(one.finish, end)) - now for one in runs])
    waits = ~jobs.running
    return np.array([np.mean(np.minimum(one.start[waits], end) - now) if waits.any() else 0.0 for one in runs])


def _nodes(snapshot: Snapshot, add: str, lose: Sequence[str]) -> list[Input]:
    """Nodes that join and nodes that go, at this instant."""
    there = [node.name for node in snapshot.cluster.description.nodes]
    for name in lose:
        if name not in there:
            raise NotFoundError(f"no node '{name}'", where="--lose", fix=near(name, there))
    found: list[Input] = [NodeEvent(snapshot.now, name, "down") for name in lose]
    if add:
        for number, node in enumerate(parse_cluster(add).nodes):
            joined = replace(node, name=f"added{number}")
            if joined.type not in snapshot.cluster.types:
                text = f"jobs have no rates for type '{joined.type}'"
                raise UsageError(text, where="--add", fix=near(joined.type, snapshot.cluster.types))
            found.append(NodeEvent(snapshot.now, joined.name, "join", joined))
    return found
