"""Names that distinguish runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gantline.core.fields import human_seconds, unit_of_seconds
from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics.catalogue import METRICS, Metric
from gantline.lab.report.run_warnings import MARK, doubts_of_run

TELLING = ("settings", "placement", "admission", "regime", "round", "estimates", "cluster", "trace", "seed")


def names_of(runs: Sequence[RunLike]) -> list[str]:
    """A distinct name for each run: its name or its policy, and where two runs share that, what else differs; doubtful runs are marked."""
    bases = [str(run.summary.get("name") or run.summary.get("policy") or "run") for run in runs]
    facts = [_facts(run.summary) for run in runs]
    names: list[str] = []
    for base, own in zip(bases, facts):
        twins = [other for name, other in zip(bases, facts) if name == base]
        telling = [key for key in own if any(other.get(key) != own[key] for other in twins)]
        full = " ".join([base, *(f"{key}={own[key]}" for key in telling)])
        name, copy = full, 1
        while name in names:
            copy += 1
            name = f"{full} #{copy}"
        names.append(name)
    return [name + (MARK if doubts_of_run(run) else "") for name, run in zip(names, runs)]


def _facts(summary: Mapping[str, Any]) -> dict[str, str]:
    """What may distinguish two runs of a policy, the settings one by one."""
    found: dict[str, str] = {}
    for key in TELLING:
        value = summary.get(key)
        if isinstance(value, Mapping):
            found.update({str(name): str(item) for name, item in value.items()})
        elif value is not None:
            found[key] = str(value)
    return found


# Metrics as people read them.

UNKNOWN = "–"


def spell(metric: Metric, value: float) -> str:
    """The value with its unit and a suitable number of digits; a dash where it is not known."""
    if not math.isfinite(value):
        return UNKNOWN
    if metric.unit == "s":
        return human_seconds(value)
    if metric.unit == "share":
        return f"{100 * value:.1f} %"
    if metric.unit == "count":
        return f"{value:,.0f}"
    if metric.unit == "money":
        return f"{value:,.2f}"
    if metric.unit == "ratio":
        return f"{value:,.2f}"
    digits = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{digits} {metric.unit}" if metric.unit in ("h", "kWh", "kg", "jobs") else digits


def speller(metric: Metric, values: Sequence[float], alike: Sequence[float] = ()) -> Callable[[float], str]:
    """How to write these values, and others like them, in one unit: times in that of the middle one (of those `alike`, where given)."""
    known, of_kind = (sorted(abs(value) for value in some if math.isfinite(value) and value) for some in (values, alike or values))
    if metric.unit != "s" or not known:
        return lambda value: spell(metric, value)
    size, unit = unit_of_seconds(of_kind[len(of_kind) // 2])
    digits = 1 if known[0] / size >= 1 else 2 if known[0] / size >= 0.1 else 3
    return lambda value: f"{value / size:,.{digits}f} {unit}" if math.isfinite(value) else UNKNOWN


def spellers(metrics: Sequence[Metric], values: Mapping[str, Sequence[float]]) -> dict[str, Callable[[float], str]]:
    """How to write the values of each metric: one unit for all of a kind, such as the mean and the percentiles of JCT."""
    kinds: dict[str, list[float]] = {}
    for metric in metrics:
        kinds.setdefault(_kind(metric), []).extend(values[metric.key])
    return {metric.key: speller(metric, values[metric.key], kinds[_kind(metric)]) for metric in metrics}


def _kind(metric: Metric) -> str:
    return metric.key.partition("_")[0]


def known_metrics(measures: Sequence[Mapping[str, float]]) -> list[Metric]:
    """The metrics worth a row: known for at least one run, and not a count of bad things that never happened."""
    quiet = {key: key for key in ("unfinished", "failed", "rejected", "deadlines", "preemptions", "restarts", "work_lost")}
    quiet |= {key: key for key in ("resizes", "migrations", "time_lost", "cross_node", "cross_rack")}
    quiet["deadline_misses"] = "deadlines"  # no miss among some deadlines is good news, not no news
    return [
        metric
        for metric in METRICS
        if any(math.isfinite(found[metric.key]) for found in measures)
        and not (metric.key in quiet and all(found[quiet[metric.key]] == 0 for found in measures))
    ]


def best_of(metric: Metric, values: Sequence[float], doubtful: Collection[int] = ()) -> set[int]:
    """Which of several runs are best in this metric, by the digits that are shown; none when all show the same, never one in doubt."""
    finite = {index: value for index, value in enumerate(values) if math.isfinite(value) and index not in doubtful}
    shown = {index: spell(metric, value) for index, value in finite.items()}
    if not metric.better or len(set(shown.values())) < 2:
        return set()
    target = spell(metric, (min if metric.better == "lower" else max)(finite.values()))
    return {index for index, text in shown.items() if text == target}
