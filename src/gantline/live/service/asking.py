"""Questions to the process that answers them: what it needs of the present, and which answers are shared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gantline.core.errors import RefusedError, UnreachableError
from gantline.live.history import history_rows
from gantline.live.service.context import Context, Instants

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
    ratios = scheduler.ask(lambda: list(scheduler.book.ratios))
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
