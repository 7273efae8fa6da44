"""Questions to the process that answers them: what it must know of the present, and which answers are shared."""

from __future__ import annotations

from typing import Any

from gantline.runtime.history import history_rows
from gantline.service.context import Context

_SECONDS = 20.0  # of CPU time for the futures of one answer; it says how many there were


def ask_now(here: Context, ask: str, newcomers: bool = False, **more: Any) -> dict[str, Any]:
    """The answer, for which the caller waits; questions about one state share its snapshot."""
    setup, scheduler = here.scheduler.setup, here.scheduler
    if newcomers:
        more["newcomers"] = history_rows(scheduler.view().jobs.values())
    head = {"ask": ask, "policy": setup.policy, "settings": dict(setup.settings), "placement": setup.placement, "costs": setup.costs}
    ratios = scheduler.ask(lambda: list(scheduler.book.ratios))
    about = str(scheduler.view().standing.version)
    return here.service.asker.ask({**head, "ratios": ratios, "seconds": _SECONDS, **more}, about, scheduler.snapshot)


def shared_forecast(
    here: Context, since: int, *, samples: int, sigma: float, newcomers: bool, learn: bool = False
) -> dict[str, Any] | None:
    """The forecast of all jobs, made once for all who ask; None: it is on its way."""

    def make() -> dict[str, Any]:
        jobs = here.scheduler.view().jobs.values()
        blind = [one.id for one in jobs if one.finished is None and one.estimate is None and one.state != "held"]
        past = {"learn": history_rows(jobs)} if learn else {}
        return ask_now(here, "forecast", newcomers, samples=samples, sigma=sigma, jobs=[], unestimated=blind, **past)

    return here.service.shared.get(("forecast", samples, sigma, newcomers, learn), make, since)


def shared_changes(here: Context, job: str, since: int) -> dict[str, Any] | None:
    """Which change would start a job that waits; None: the answer is on its way."""
    return here.service.shared.get(("changes", job), lambda: ask_now(here, "changes", job=job), since)
