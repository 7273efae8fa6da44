"""Which combination is best, by futures that all have the same draws: scores, and whether a challenger is enough better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.objective import Objective
from gantline.core.outcomes import Ended
from gantline.core.snapshot import Snapshot
from gantline.simulator.rollout import Futures


@dataclass(frozen=True)
class Verdict:
    """The place of the combination that shall be in charge, its score and that of the one that was, and the share of futures it won."""

    best: int
    score: float
    before: float
    share: float


def scores(snapshot: Snapshot, futures: Sequence[Futures], objective: Objective, until: float, beside: int) -> Floats:
    """Scores by (combination, future), less is better; those of one that has failed are infinite. Sums are in proportion to `beside`."""
    count = max(len(one) for one in futures)
    found = np.full((len(futures), count), np.inf)
    if objective.words == ("mean-jct",) and until == math.inf and all(np.isfinite(one.finish).all() for one in futures):
        for place, one in enumerate(futures):  # the usual case at once
            found[place, : len(one)] = (one.finish - snapshot.jobs.arrival).mean(axis=1)
        return found
    for number in range(count):
        values = [objective.values(_ended(snapshot, one, number, until)) if len(one) > number else None for one in futures]
        measure = values[beside] or next(each for each in values if each is not None)
        for place, each in enumerate(values):
            if each is not None:
                found[place, number] = objective.score(each, measure)
    return found


def _ended(snapshot: Snapshot, one: Futures, number: int, until: float) -> Ended:
    """A future as an objective sees it; how long jobs would take is as estimated, for all combinations alike."""
    jobs, finish = snapshot.jobs, one.finish[number]
    last = float(np.max(finish[np.isfinite(finish)], initial=snapshot.now))
    began = np.where(np.isnan(jobs.first_start), one.start[number], jobs.first_start)
    end = until if math.isfinite(until) else last
    gpus = jobs.gpus.astype(np.float64)
    dollars, kwh = (math.nan if each is None else float(each[number]) for each in (one.dollars, one.kwh))
    return Ended(
        jobs.arrival, began, finish, jobs.estimate, gpus, end, float(snapshot.cluster.gpus), jobs.deadline, dollars=dollars, kwh=kwh
    )


def judge(found: Floats, present: int | None, margin: float, most: float, cost: float) -> Verdict | None:
    """Which policy shall be in charge; None: all have failed. A challenger must beat the one in charge by the margin in most futures."""
    means = found.mean(axis=1)
    if not np.isfinite(means).any():
        return None
    best = int(np.argmin(means))
    if present is None or not math.isfinite(means[present]):
        return Verdict(best, float(means[best]), math.nan if present is None else float(means[present]), 1.0)
    stays = Verdict(present, float(means[present]), float(means[present]), 1.0)
    for challenger in np.argsort(means, kind="stable").tolist():
        if challenger == present or means[challenger] >= means[present]:
            break
        share = float((found[challenger] + cost < (1.0 - margin) * found[present]).mean())
        if share > most or share == 1.0:
            return Verdict(challenger, float(means[challenger]), float(means[present]), share)
    return stays
