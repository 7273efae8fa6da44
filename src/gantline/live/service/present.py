"""Why a job waits, at once: its reason, its place in the queue and what is ahead of it, read from the last decision's results.

No policy is called and nothing is computed: forecasts, which take longer, say what a policy would do next.
"""

from __future__ import annotations

from typing import Any

from gantline.core.units import human_seconds
from gantline.live.book import MUST
from gantline.live.service.context import Context
from gantline.live.view import JobView

_RUNS = ("starting", "running", "resizing", "preempting")
_SHOWN = 100  # jobs that are listed on either side
OTHERS = "-"  # instead of the id of a job that the caller may not see


def explain_now(here: Context, job: JobView) -> dict[str, Any]:
    """What is known of the job now, as values and as sentences."""
    view = here.scheduler.view()
    standing, waits_for = view.standing, _dependencies(here, job)
    found: dict[str, Any] = {
        "job": job.id, "state": job.state, "act": "waits" if job.state == "pending" else "runs" if job.state in _RUNS else job.state,
        "reason": job.reason, "why": job.why, "needs": job.gpus, "free": dict(standing.free), "devices": list(job.devices),
        "after": waits_for, "version": standing.version, "in_charge": view.in_charge,
    }  # fmt: skip
    ahead = standing.ahead(job.row) if job.state == "pending" else None
    if ahead is not None:
        holders = sorted((one for one in view.jobs.values() if one.devices and one.id != job.id), key=_ends_in)
        found |= {"position": len(ahead) + 1, "waiting": len(standing.waiting), "ranked": standing.ranked, "ahead_waiting": len(ahead)}
        found["ahead"] = [
            *({"job": _seen(here, one), "gpus": len(one.devices), "holds": True, "ends_in": _left(one)} for one in holders[:_SHOWN]),
            *({"job": _seen(here, view.jobs[id]), "gpus": view.jobs[id].gpus, "holds": False, "ends_in": None} for id in ahead[:_SHOWN]),
        ]
        found["why"] = _why(job, found, standing.devices)
    return {**found, "lines": _lines(job, found)}


def _why(job: JobView, found: dict[str, Any], devices: Any) -> str:
    free, all_ = sum(found["free"].values()), sum(devices.values())
    needs = f"needs {job.gpus} device{'s' if job.gpus != 1 else ''}, {free} of {all_} {'is' if free == 1 else 'are'} free"
    return f"{job.why}: {needs}" if job.why else needs


def _lines(job: JobView, found: dict[str, Any]) -> list[str]:
    if found["act"] == "runs":
        return [f"{job.id} is {job.state}" + (f" on {', '.join(job.devices)}" if job.devices else "")]
    if "position" not in found:
        lines = [f"{job.id} is {job.state}" + (f": {job.why}" if job.why else "")]
        return lines + [f"it waits for job {one['job']} to {one['must']}, which is {one['state']}" for one in found["after"]]
    order = "" if found["ranked"] else " (as submitted: the policy names no order)"
    why = found["why"] if found["why"].startswith("waits ") else f"waits: {found['why']}"
    lines = [f"{job.id} {why}", f"it is number {found['position']} of {found['waiting']} that wait{order}"]
    holders = [one for one in found["ahead"] if one["holds"]]
    waiting = [one["job"] for one in found["ahead"] if not one["holds"]]
    if holders:
        lines.append("devices are with " + _listed([_holder(one) for one in holders], len(holders), "; "))
    if waiting:
        lines.append(f"ahead of it: {_listed(waiting, found['ahead_waiting'], ', ')}")
    return [*lines, *([found["in_charge"]] if found["in_charge"] else [])]


def _listed(names: list[str], count: int, between: str) -> str:
    known = [name for name in names if name != OTHERS][:5]
    rest = count - len(known)
    more = f"{rest} more" if known else f"{rest} of other users"
    return between.join(known) + (f"{' and ' if known else ''}{more}" if rest else "")


def _holder(one: dict[str, Any]) -> str:
    if one["job"] == OTHERS:
        return OTHERS
    left = "no estimate" if one["ends_in"] is None else f"about {human_seconds(one['ends_in'])} left"
    return f"{one['job']} ({one['gpus']} device{'s' if one['gpus'] != 1 else ''}, {left})"


def _left(one: JobView) -> float | None:
    """Seconds until a job has done its estimated work; None: there is no estimate."""
    return None if one.estimate is None else max(0.0, one.estimate - one.work)


def _ends_in(one: JobView) -> float:
    left = _left(one)
    return float("inf") if left is None else left


def _seen(here: Context, one: JobView) -> str:
    return one.id if here.caller.sees(one.user) else OTHERS


def _dependencies(here: Context, job: JobView) -> list[dict[str, str]]:
    """Jobs that it depends on and that are not yet what they must be."""
    jobs, found = here.scheduler.view().jobs, []
    for other, when in job.after:
        known = jobs.get(other)
        if known is not None and job.state == "held" and "dependency" in job.held:
            shown = _seen(here, known)
            found.append({"job": shown, "must": MUST[when], "state": known.state})
    return found


def left_out(here: Context) -> list[dict[str, str]]:
    """Jobs that are held, which forecasts leave out."""
    return [{"job": one.id, "why": one.why or one.reason} for one in here.listed() if one.state == "held"]
