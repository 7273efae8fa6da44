"""How much later jobs start and end than forecast, learned from forecasts that are due.

Futures in which no new job arrives, or in which work is surer than it is, end too early. Whatever the reason, forecasts that are
due show by how much: lateness is counted in lengths, of which one is the time from the forecast to the job's P50 end, and nine of ten
were less late than what the P90 is moved by (split conformal prediction: Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random
World", 2005). It guarantees the share, if future forecasts err as past ones did, and nothing about any single forecast.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from gantline.lab.questions.forecast import Forecast
from gantline.lab.questions.shares import SHARES
from gantline.lab.questions.stretch import UNSTRETCHED, Stretch

FEWEST = 20  # forecasts that must be due before anything is learned


def learn(made: Iterable[Forecast], happened: Mapping[str, tuple[float, float]], now: float) -> Stretch:
    """What forecasts have shown by now: each counts when its P90 has passed, true or not, so that early ends do not bias it.

    `happened` are (start, finish) of jobs, NaN for what has not come yet.
    """
    found = {}
    count = 0
    for at, name in enumerate(("start", "finish")):
        over = [one for one in made if getattr(one, f"{name}_p90") <= now]
        count = len(over)
        if count < FEWEST:
            return UNSTRETCHED
        for part, share in SHARES.items():
            late = sorted(_lengths(one, f"{name}_{part}", happened.get(one.job, (math.nan,) * 2)[at], now) for one in over)
            found[f"{name}_{part}"] = late[min(math.ceil((count + 1) * share), count) - 1]
    return Stretch(**found, forecasts=count)


def _lengths(one: Forecast, name: str, came: float, now: float) -> float:
    """How late it came, or is by now."""
    return ((now if math.isnan(came) else came) - float(getattr(one, name))) / one.length
