"""Which policies decided during a run, where one chose among several: when, for how long, and why the last was chosen."""

from __future__ import annotations

from itertools import pairwise

from gantline.lab.report.frames import RunLike, span_of

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
