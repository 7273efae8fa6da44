"""What a run provides to a policy about speeds, from its options and its performance model."""

from __future__ import annotations

import numpy as np

from gantline.core.columns import Job, Option
from gantline.core.facts import NO_FACTS, Facts
from gantline.core.tables import Tables


def provided_needs(tables: Tables, facts: Facts = NO_FACTS) -> frozenset[str]:
    """Those of `gantline.core.estimates.NEEDS` that do not depend on estimates of work."""
    found = {"rates", "deadlines"}
    if np.isfinite(tables.F[Job.DEADLINE]).any():
        found.add("some-deadline")
    if tables.performance is not None:
        found |= {"pairs", "scaling"}
    elif lists_curves(tables):
        found.add("scaling")
    return frozenset(found) | factual_needs(facts)


#: needs that are facts of the run, whatever its jobs are
FACTUAL = frozenset({"carbon", "power", "prices"})


def factual_needs(facts: Facts) -> frozenset[str]:
    """Those of them that the run has."""
    there = {"carbon": facts.grid.carbon is not None, "power": bool(facts.grid.power), "prices": bool(facts.prices)}
    return frozenset(name for name, is_there in there.items() if is_there)


def lists_curves(tables: Tables) -> bool:
    """Whether the options list speeds for other numbers of devices: for one at least, and for all that may change their size."""
    count = tables.I[Job.OPTION_COUNT]
    if count.max(initial=0) < 2:
        return False
    owner = np.repeat(np.arange(len(count)), count)
    entry = np.arange(len(owner)) + np.repeat(tables.I[Job.OPTION_FIRST] - (np.cumsum(count) - count), count)
    gpus = tables.options.I[Option.GPUS][entry]
    sizes = np.unique(np.stack([owner[gpus > 0], gpus[gpus > 0]]), axis=1)[0]
    listed = np.bincount(sizes, minlength=len(count)) > 1
    elastic = tables.I[Job.MIN_GPUS] < tables.I[Job.MAX_GPUS]
    return bool(listed.any() and listed[elastic].all())
