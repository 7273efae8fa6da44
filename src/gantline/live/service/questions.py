"""Why a job waits, at once: its reason, its place in the queue and what is ahead of it, read from the last decision's results.

No policy is called and nothing is computed: forecasts, which take longer, say what a policy would do next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gantline.core.errors import RefusedError, UnreachableError
from gantline.core.fields import human_seconds
from gantline.live.scheduler.job_registry import MUST
from gantline.live.scheduler.view import JobView
from gantline.live.service.context import Context, Instants

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


# Questions to the process that answers them: what it needs of the present, and which answers are shared.

_SECONDS = 20.0  # of CPU time for the futures of one answer, which states how many there were
_PROMPT_SECONDS = 2.0  # of CPU time for those of a question that somebody waits for
_PROMPT_LIMIT = 20.0  # seconds for all of it, in which a single future may take too long


@dataclass(frozen=True)
class ForecastDraws:
    """How many futures a forecast rests on, and what varies between them."""

    samples: int | None = None  # None: as usual, see `questions.forecast.Setup`
    sigma: float = 0.5
    newcomers: bool = False
    learn: bool = False


_PROMPT = ("changes", "submission")  # questions about one job, which do not wait for forecasts of all jobs
USUAL = ForecastDraws()  # the forecast that lists and pages show


def ask_now(here: Context, ask: str, newcomers: bool = False, limit: float | None = None, **more: Any) -> dict[str, Any]:
    """The answer, for which the caller waits, up to `limit` seconds; questions about one state share its snapshot."""
    setup, scheduler = here.scheduler.setup, here.scheduler
    if newcomers:
        more["newcomers"] = history_rows(scheduler.view().jobs.values())
    head: dict[str, object] = {
        "ask": ask,
        "policy": setup.policy,
        "settings": dict(setup.settings),
        "placement": setup.placement,
        "costs": setup.costs,
    }
    if setup.profiles:
        head["profiles"] = setup.profiles
    ratios = scheduler.ask(lambda: list(scheduler.registry.ratios))
    about = str(scheduler.view().standing.version)
    asker = here.service.prompt if ask in _PROMPT else here.service.asker
    return asker.ask({**head, "ratios": ratios, "seconds": _SECONDS, **more}, about, scheduler.snapshot, limit)


def ask_of_submission(here: Context, job: Mapping[str, object]) -> dict[str, Any]:
    """Where a job would stand if it were submitted now; what slow forecasts keep from being found is left out, and `unknown` says so."""
    try:
        return ask_now(here, "submission", job=job, seconds=_PROMPT_SECONDS, limit=_PROMPT_LIMIT)
    except (RefusedError, UnreachableError) as error:
        found = ask_now(here, "submission", job=job, seconds=0.0)
        return {**found, "unknown": error.what, "lines": [*found["lines"][:1], f"no start can be named: {error.what}"]}


def shared_forecast(here: Context, since: int, draws: ForecastDraws) -> dict[str, Any] | None:
    """The forecast of all jobs, made once for all requests; None: it is being made."""

    def make() -> dict[str, Any]:
        jobs = here.scheduler.view().jobs.values()
        past: dict[str, Any] = {"learn": history_rows(jobs)} if draws.learn else {}
        question: dict[str, Any] = {"samples": draws.samples, "sigma": draws.sigma, "jobs": []}
        return ask_now(here, "forecast", draws.newcomers, **question, **past)

    return here.service.shared.get(draws, make, since)


@dataclass(frozen=True)
class ExpectedStarts:
    """When waiting jobs are expected to start, P50 and P90, in seconds since 1970.

    `status`: ready; old: of a state that has changed since; pending: being made; none: none was requested yet.
    """

    status: str
    by_job: Mapping[str, Instants] = field(default_factory=dict)


def expected_starts(here: Context, *, ask: bool) -> ExpectedStarts:
    """Of the newest shared forecast; `ask` for one of the present where that is older."""
    version, service = here.scheduler.view().standing.version, here.service
    if ask:
        shared_forecast(here, version, USUAL)
    found = service.shared.newest(USUAL)
    if found is None or found.answer is None:
        return ExpectedStarts("pending" if ask else "none")
    known, starts = service.starts
    if known is not found:
        starts = {one["job"]: (service.wall(one["start_p50"]), service.wall(one["start_p90"])) for one in found.answer["jobs"]}
        service.starts = found, starts
    return ExpectedStarts("ready" if found.version >= version else "pending" if ask else "old", starts)


def shared_changes(here: Context, job: str, since: int) -> dict[str, Any] | None:
    """Which change would start a job that waits; None: it is being computed."""
    return here.service.changes.get(job, lambda: ask_now(here, "changes", job=job), since)


def shared_what_if(here: Context, since: int, draws: ForecastDraws, **change: Any) -> dict[str, Any] | None:
    """The present under another policy or on other nodes, made once for all equal requests; None: it is being made."""
    key = tuple((name, tuple(sorted(value.items())) if isinstance(value, dict) else tuple(value)) for name, value in change.items())
    question = {"samples": draws.samples, "sigma": draws.sigma, **change}
    return here.service.shared.get(("what-if", draws, key), lambda: ask_now(here, "what-if", draws.newcomers, **question), since)


# The past as a trace: jobs that have ended, as rows that the simulator reads.
#
# Its limits: only jobs that succeeded are in it; a duration is the time a job ran on the devices that it had, with
# what it lost or did twice; a job that was held, or waited for another one, arrives when it was submitted; speeds at
# other sizes or on other types are not known.

LIMITS = (
    "only jobs that succeeded are in it",
    "a duration is the time a job ran on the devices it had, with what it lost or did twice",
    "a job that was held or waited for another job arrives when it was submitted",
    "speeds at other sizes or on other types are not known",
)
_LEAST = 1e-3  # seconds: a trace has no jobs without duration


def history_rows(jobs: Iterable[JobView]) -> list[dict[str, Any]]:
    """Rows in order of arrival; times are seconds since the home was made."""
    known = [job for job in jobs if job.state == "succeeded" and job.started is not None and job.finished is not None]
    return [_row(job) for job in sorted(known, key=lambda job: (job.submitted, len(job.id), job.id))]


def _row(job: JobView) -> dict[str, Any]:
    row = {"job": job.id, "arrival": job.submitted, "gpus": job.gpus, "duration": max(job.service, _LEAST), "user": job.user}
    row |= {"queue": job.queue, "model": job.name, "min_gpus": job.min_gpus, "max_gpus": job.max_gpus, "priority": job.priority}
    return {**job.metrics, **row, "started": job.started, "ended": job.finished, "attempts": 1 + job.restarts}
