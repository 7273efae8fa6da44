"""Reasons to doubt the numbers of a run: lost turns, jobs that did not end, a queue that only grows.

Such a run is marked wherever it is shown, and never wins: a mean over the jobs that happened to end is no result. Stops that cost nothing
are no doubt, but they are reported, and so is a run in which no job had to wait: every policy would have done as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from gantline.lab.report.frames import RunLike, span_of
from gantline.lab.report.metrics.steadiness import steadiness

MARK = " (!)"
"""Behind the name of a run that is in doubt."""
MANY = 100
"""Fewer jobs are a burst, which cannot reach a steady state."""
UNSTEADY = "no steady state"


def doubts_of(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """The doubts that a summary records; `steady` is in those of stored results."""
    found = []
    if summary.get("lost_turns"):
        found.append(f"{summary['lost_turns']:,} of {summary['decisions']:,} decisions were lost")
    if summary.get("unfinished"):
        found.append(f"{summary['unfinished']:,} of {summary['tracked']:,} jobs did not end")
    if summary.get("steady") is False and summary.get("jobs", 0) >= MANY:
        found.append(UNSTEADY)
    return tuple(found)


def doubts_of_run(run: RunLike) -> tuple[str, ...]:
    """The doubts about a run with its frames."""
    summary = run.summary
    steady = steadiness(run).steady if "steady" not in summary and summary.get("jobs", 0) >= MANY else summary.get("steady")
    return doubts_of({**summary, "steady": steady})


def is_broken(summary: Mapping[str, Any]) -> bool:
    """Whether a script should stop here: turns were lost, or jobs did not end although nothing was to stop them."""
    return bool(summary.get("lost_turns") or (summary.get("unfinished") and not summary.get("bounded")))


def free_stops(summary: Mapping[str, Any]) -> str:
    """That stopping jobs cost nothing in a run that did; empty where there was a price or no job was stopped."""
    stops = summary.get("preemptions", 0)
    if not stops or not summary.get("free_stops"):
        return ""
    return f"{stops:,} preemptions of {summary['jobs']:,} jobs cost nothing, because no --costs were given (try --costs measured)"


def wholes_for_parts(summary: Mapping[str, Any]) -> str:
    """That jobs which need a part of a GPU were given whole ones; empty where none were."""
    count = summary.get("wholes_for_parts", 0)
    if not count:
        return ""
    parts = f"{count:,} of {summary['jobs']:,} jobs {'needs' if count == 1 else 'need'} a part of a GPU"
    return f"{parts} and got a whole one, because {summary['policy']} does not share GPUs (try --policy sharing)"


def turned_away(summary: Mapping[str, Any]) -> str:
    """That jobs were rejected, failed or cancelled, so that means are over the others; empty where none were."""
    if "tracked" not in summary or "unfinished" not in summary:
        return ""
    count = summary["tracked"] - summary["completed_tracked"] - summary["unfinished"]
    text = f"{count:,} of {summary['tracked']:,} jobs were turned away, failed or were cancelled, and count in no mean"
    return text if count > 0 else ""


def ways_left_out(summary: Mapping[str, Any]) -> str:
    """That jobs could have run on types that the cluster does not have, or in sizes that it cannot hold; empty where there were none."""
    names, found = summary.get("absent_types") or (), []
    if names:
        types = ", ".join(f"'{name}'" for name in names)
        found.append(f"jobs may also run on {types}, which the cluster does not have: those options were left out")
    if count := summary.get("left_out_options", 0):
        found.append(f"{count:,} options were left out, because the cluster cannot hold them")
    return "; ".join(found)


def links_apart(summary: Mapping[str, object]) -> str:
    """That the links of the cluster do not connect all of its nodes, so that gangs between them cross none; empty where they do."""
    groups = summary.get("nodes_apart", 0)
    text = f"links connect the nodes in {groups} groups only: gangs across these cross no link, and wait for none"
    return text if groups else ""


def no_contest(summary: Mapping[str, Any]) -> str:
    """That no job had to wait in a run to its end, so that it says nothing about its policy; empty where one did."""
    if summary.get("waited") != 0 or summary.get("jobs", 0) < 2 or summary.get("bounded") or doubts_of(summary):
        return ""
    used = summary.get("utilization")
    text = "" if used is None else f" (utilization {100 * used:.1f} %)"
    return f"no job had to wait{text}: this says nothing about the policy; take a smaller --cluster or a higher load"


# Which policies decided during a run, where one chose among several: when, for how long, and why the last was chosen.

_NAMED = 4


def spells_in_charge(run: RunLike) -> list[tuple[float, float, str]]:
    """(from, to, policy) in order of time, within the run."""
    start, end = span_of(run)
    starts = [(max(start, float(since)), str(policy)) for since, policy, _ in run.summary.get("in_charge") or ()]
    return [(since, until, policy) for (since, policy), (until, _) in pairwise([*starts, (end, "")]) if until > since]


def policies_in_charge(run: RunLike) -> str:
    """The shares of the time, and why the last change was made; empty where one policy decided all the time."""
    if not (turns := run.summary.get("in_charge")):
        return ""
    seconds: dict[str, float] = {}
    for since, until, policy in spells_in_charge(run):
        seconds[policy] = seconds.get(policy, 0.0) + until - since
    total = sum(seconds.values())
    order = sorted(seconds, key=lambda policy: -seconds[policy])
    shares = [f"{policy} for {_percent(seconds[policy] / total)} of the time" for policy in order[:_NAMED]]
    others = [f"{len(order) - _NAMED} others"] if len(order) > _NAMED else []
    changes = len(turns) - 1
    why = f"; the last: {last}" if (last := str(turns[-1][2])) else ""
    return f"in charge: {', '.join([*shares, *others])} ({changes} change{'' if changes == 1 else 's'}{why})"


def _percent(share: float) -> str:
    return "less than 1 %" if share < 0.01 else f"{100 * share:.0f} %"
