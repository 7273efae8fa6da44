"""What the synthesizer chooses from, and which combination is best by futures that all have the same draws."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import UsageError
from gantline.core.objective import Objective
from gantline.core.outcomes import Ended
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.policies.admission.rules import find_admission
from gantline.simulator.rollout import Futures
from gantline.traces.files.policies import load_placement, load_policy

# --- every policy of the portfolio behind every admission rule ----------------------------------------------------------
WHERE = "policy 'synthesizer'"
ITSELF = ("synthesizer", "auto")
_OWN_CLASS = "gantline.simulator.synthesizer.policy.Synthesizer"
_ENTRY = re.compile(r"(?P<name>[^()]+?)(?:\((?P<settings>[^()]*)\))?")


@dataclass(frozen=True)
class Combination:
    """One policy behind one admission rule, its gangs placed by one rule; `load_limit` is in times the cluster's GPUs."""

    name: str
    member: str  # the policy as the portfolio writes it; its memory is kept while another is in charge
    policy: Policy
    admission: str
    load_limit: float
    placement: str = ""  # empty: the run's


@lru_cache(maxsize=32)
def combinations(portfolio: tuple[str, ...], admissions: tuple[str, ...], placements: tuple[str, ...] = ()) -> tuple[Combination, ...]:
    """All of them, in order: the first wins where several are alike."""
    if not portfolio:
        raise UsageError("the portfolio is empty", where=WHERE, fix="--set portfolio=fifo,las,srtf")
    for what, names in (("portfolio", portfolio), ("admissions", admissions), ("placements", placements)):
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"'{name}' stands twice in {what}", where=WHERE, fix="name it once")
    found = []
    for member in portfolio:
        policy = _policy(member)
        for admission in admissions or ("accept-all",):
            rule = find_admission(admission)
            if rule.has_quota:
                raise UsageError(f"'{admission}' is a quota, which belongs to the run", where=WHERE, fix="use accept-all or load-limit:1.2")
            if rule.load_limit != float("inf") and not policy.ranks:
                text = f"'{member}' makes plans for all jobs that it sees, so none can be kept from it by '{admission}'"
                raise UsageError(text, where=WHERE, fix="use accept-all, or leave the policy out")
            behind = member if admission == "accept-all" else f"{member}+{admission}"
            for placement in placements or ("",):
                _check_placement(member, policy, placement)
                name = f"{behind}@{placement}" if placement else behind
                found.append(Combination(name, member, policy, admission, rule.load_limit, placement))
    return tuple(found)


def _check_placement(member: str, policy: Policy, placement: str) -> None:
    """A placement rule that is not known, or that the policy does not use, is refused."""
    if not placement:
        return
    load_placement(placement)
    if not policy.ranks:
        text = f"'{member}' says itself which devices its gangs get, so '{placement}' would change nothing"
        raise UsageError(text, where=WHERE, fix="leave out placements, or the policy")


def _policy(member: str) -> Policy:
    """A policy as a portfolio writes it: ``las``, ``las(service=gpu-time)``, ``fifo(backfill=easy)``."""
    read = _ENTRY.fullmatch(member.strip())
    if read is None:
        raise UsageError(f"'{member}' cannot be read", where=WHERE, fix="write a policy as las or las(service=gpu-time)")
    name, settings = read["name"].strip(), {}
    for part in (read["settings"] or "").split(";"):
        key, equals, value = part.partition("=")
        if part.strip():
            if not equals:
                raise UsageError(f"'{part}' is no setting", where=WHERE, fix=f"write {name}(parameter=value)")
            settings[key.strip()] = value.strip()
    given: dict[str, object] = settings
    policy = None if name in ITSELF else load_policy(name, given)  # a file may be one, too
    if policy is None or any(f"{kind.__module__}.{kind.__name__}" == _OWN_CLASS for kind in type(policy.observed).__mro__):
        raise UsageError(f"the portfolio holds the synthesizer itself, as '{name}'", where=WHERE, fix="name other policies")
    return policy


# --- scores, and whether a challenger is enough better ------------------------------------------------------------------


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
