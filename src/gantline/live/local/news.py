"""What the runner reports of an incarnation: the engine's input, and how the incarnation ended."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from gantline.core.inputs import Fault
from gantline.engine.drivers.live import Clock
from gantline.engine.executor import News, Report
from gantline.live.bulletins import Ending
from gantline.live.local.incarnation import Incarnation
from gantline.live.local.moments import seconds_ago


def _when(state: Mapping[str, Any], name: str, clock: Clock, now: float) -> float:
    """When the keeper says that it was; a wall clock that was set since then does not matter."""
    wall = state.get(name)
    if wall is None or not hasattr(clock, "at"):
        return now
    ago = seconds_ago(state, name)
    return clock.at(float(wall)) if ago is None else max(0.0, now - ago)


def report_of(one: Incarnation, news: News, saved: float, clock: Clock) -> tuple[Report, Ending | None]:
    """The report, and how it ended if it has; `saved` is the work that the job has reported as saved (NaN: it does not report it)."""
    done, where = one.resumed, one.devices if not one.over else ()
    if news is News.SAVED and one.saved is not None:
        done = one.saved
    if news is News.STOPPED and one.order.get("resumes") and not one.state.get("forced"):
        done = one.believed
    elif news in (News.STOPPED, News.FAILED):
        done = saved if not math.isnan(saved) else (one.resumed if one.order.get("resumes") else 0.0)
    now = clock.now()
    at = _when(one.state, "started" if news is News.STARTED else "ended", clock, now)
    revision = max(0, int(one.state.get("revision", 0)) - int(one.order.get("base", 0)))
    lost = Fault(one.state["fault"]) if one.over and one.state.get("fault") else None
    picked = tuple(one.state.get("actual", ())) if where else ()
    report = Report(news, one.row, one.epoch, now if news is News.SAVED else at, done, where, revision=revision, lost=lost, actual=picked)
    if not one.over:
        return report, None
    lines = tuple(one.last_lines()) if news is News.FAILED else ()
    return report, Ending(
        one.state.get("exit"), str(one.state.get("why", "")), lines, bool(one.state.get("forced")), hold=str(one.state.get("hold", ""))
    )
