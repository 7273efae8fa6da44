"""`shockwave`: plan a window of rounds so that jobs progress alike, late ones first and none left for the end (NSDI 2023)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil, floor, log
from typing import Any

import numpy as np
from scipy import sparse

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.plan import Plan
from gantline.core.policy import Policy, parameter
from gantline.core.snapshot import Snapshot
from gantline.models.solvers.linear_programs import LinearProgram, solve

# The window of Shockwave's planner (section 6 of the paper): how many of the next rounds each job gets, which, and what fills the rest.
#
# Three questions to the solver in the original; f is concave and priorities are positive, so counts of rounds are enough for the second:
#
# fair     every job keeps the fair finish time, if that is possible at all
# relaxed  utility of progress weighted by how late a job is, less the longest job that is left
# ranked   the same counts, jobs that are late first


_KNOTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_NOTHING = 1e-6  # stands for no progress at all, whose logarithm is not finite
_URGENT = 1e4  # priorities above this are served first, in their order; as weights they would drown all others in rounding
_RANKED = 1e5  # largest weight in the ranking
_NODES = 100  # of branch and bound in the ranking: published runs need a few, while wide gangs that cannot be packed take for ever


@dataclass(frozen=True)
class PlanningWindow:
    """The jobs of one plan, and what is wanted of it."""

    gang: Ints
    epochs: Floats
    done: Floats  # epochs done
    duration: Floats  # mean seconds of an epoch
    remaining: Floats  # expected seconds until the end
    priority: Floats
    gpus: int
    rounds: int = 20
    length: float = 120.0
    makespan: float = 1e-3  # weight of the longest job left over
    gap: float = 1e-3
    least: Floats | None = None  # seconds of work that each job must have at least


def priorities(lateness: Floats, remaining: Floats, *, largest: float, power: float, length: float) -> Floats:
    """Weights of jobs that will be late: their ratio to the fair finish time to a power; those about to end before all others."""
    late = lateness > largest
    with np.errstate(over="ignore"):
        return np.where(late, lateness ** np.where(remaining < length, 100.0, power), 1.0)


def fair_window(w: PlanningWindow, target: Floats, share: float, largest: float, end: float) -> PlanningWindow | None:
    """The window in which every job keeps the fair finish time; None: one lies before the window's end, or the budgets do not suffice.

    What is left after the window must be done by the target on an equal share: a lower bound on the work within the window.
    """
    slack = largest * target - end
    if (slack < 0.0).any():
        return None
    least = np.maximum(0.0, w.remaining - share * slack)
    rounds = np.ceil(least / w.length - 1e-9)
    most = np.maximum((w.epochs - w.done) * w.duration, 0.0)
    if (least > most + 1e-9).any() or (rounds > w.rounds).any() or float(w.gang @ rounds) > w.gpus * w.rounds:
        return None
    return replace(w, priority=np.ones(len(w.gang)), least=least)


def plan_counts(w: PlanningWindow) -> tuple[Ints, float]:
    """Rounds per job within the window, and the value of the plan (the relaxed problem)."""
    program = _program(w)
    found = solve(program, "mip", gap=w.gap, jump=False)
    if not len(found.x):
        return np.zeros(len(w.gang), dtype=np.int64), -np.inf
    counts = np.rint(found.x[: len(w.gang)]).astype(np.int64)
    return counts, found.objective


def value_of(w: PlanningWindow, counts: Ints) -> float:
    """The objective of the relaxed problem for given counts, with every priority as it is."""
    most = (w.epochs - w.done) * w.duration
    seconds = np.minimum(counts * w.length, most)
    progress = np.minimum((w.done + seconds / w.duration) / w.epochs, 1.0)
    utility = np.interp(progress, _KNOTS, [log(max(knot, _NOTHING)) for knot in _KNOTS])
    with np.errstate(invalid="ignore"):
        gain = np.where(utility == 0.0, 0.0, w.priority * utility)
    return float(gain.sum() / (len(w.gang) * w.rounds) - w.makespan * max(0.0, float((w.remaining - seconds).max())))


def _program(w: PlanningWindow) -> LinearProgram:
    """Columns: rounds, seconds of work and utility of every job; then the longest job left over."""
    jobs = len(w.gang)
    weight, floor = _urgent_first(w)
    most = np.maximum((w.epochs - w.done) * w.duration, 0.0)
    slopes, heights = _segments()
    count = np.arange(jobs)
    rows, columns, values = [], [], []

    def add(row: Ints, column: Ints, value: Floats) -> None:
        rows.append(row)
        columns.append(column)
        values.append(np.broadcast_to(value, row.shape))

    add(count, jobs + count, np.ones(jobs))  # seconds within the rounds given
    add(count, count, np.full(jobs, -w.length))
    for k, slope in enumerate(slopes):  # utility below every segment: u = (done + seconds / duration) / epochs
        at = jobs * (k + 1) + count
        add(at, 2 * jobs + count, np.ones(jobs))
        add(at, jobs + count, -slope / (w.duration * w.epochs))
    at = jobs * (len(slopes) + 1) + count
    add(at, jobs + count, -np.ones(jobs))  # the longest is at least what each has left
    add(at, np.full(jobs, 3 * jobs), -np.ones(jobs))
    last = jobs * (len(slopes) + 2)
    add(np.full(jobs, last), count, w.gang.astype(np.float64))
    upper = np.concatenate(
        [
            np.zeros(jobs),
            *[height + slope * w.done / w.epochs for slope, height in zip(slopes, heights)],
            -w.remaining,
            [float(w.gpus * w.rounds)],
        ]
    )
    matrix = sparse.csc_array(
        (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(last + 1, 3 * jobs + 1), dtype=np.float64
    )
    whole = np.zeros(3 * jobs + 1)
    whole[:jobs] = 1.0
    least = np.zeros(jobs) if w.least is None else np.minimum(w.least, most)
    low = np.concatenate([floor.astype(np.float64), least, np.full(jobs, log(_NOTHING)), [0.0]])
    high = np.concatenate([np.full(jobs, float(w.rounds)), most, np.zeros(jobs), [np.inf]])
    gain = np.concatenate([np.zeros(2 * jobs), weight / (jobs * w.rounds), [-w.makespan]])
    return LinearProgram(gain, matrix, np.full(last + 1, -np.inf), upper, low, high, whole)


def _urgent_first(w: PlanningWindow) -> tuple[Floats, Ints]:
    """Weights, and rounds that very late jobs have for certain, in the order of their priorities."""
    weight, floor = w.priority.copy(), np.zeros(len(w.gang), dtype=np.int64)
    left = w.gpus * w.rounds
    for k in np.argsort(-w.priority, kind="stable").tolist():
        if not w.priority[k] > _URGENT:
            break
        wanted = ceil((w.epochs[k] - w.done[k]) * w.duration[k] / w.length)
        floor[k] = max(0, min(w.rounds, wanted, left // int(w.gang[k])))
        left -= int(floor[k] * w.gang[k])
        weight[k] = 1.0
    return weight, floor


def _segments() -> tuple[list[float], list[float]]:
    """Slope and height at zero of every piece of the logarithm."""
    points = [(knot, log(max(knot, _NOTHING))) for knot in _KNOTS]
    slopes = [(y - b) / (x - a) for (a, b), (x, y) in pairwise(points)]
    return slopes, [b - slope * a for slope, (a, b) in zip(slopes, points)]


def rank_rounds(w: PlanningWindow, counts: Ints) -> Bools | None:
    """In which rounds each job runs: as early as its priority says; None: the counts cannot be packed."""
    chosen = np.flatnonzero(counts > 0)
    jobs, rounds = len(chosen), w.rounds
    plan = np.zeros((len(w.gang), rounds), dtype=np.bool_)
    if not jobs:
        return plan
    weight = np.minimum(w.priority[chosen], _RANKED) / counts[chosen]
    cells = np.arange(jobs * rounds)
    owner, at = cells // rounds, cells % rounds
    matrix = sparse.csc_array(
        (
            np.concatenate([np.ones(len(cells)), w.gang[chosen][owner].astype(np.float64)]),
            (np.concatenate([owner, jobs + at]), np.concatenate([cells, cells])),
        ),
        shape=(jobs + rounds, len(cells)),
    )
    exact = counts[chosen].astype(np.float64)
    program = LinearProgram(
        -weight[owner] * at,
        matrix,
        np.concatenate([exact, np.full(rounds, -np.inf)]),
        np.concatenate([exact, np.full(rounds, float(w.gpus))]),
        np.zeros(len(cells)),
        np.ones(len(cells)),
        np.ones(len(cells)),
    )
    for jump in (False, True):  # the relaxed program nearly always leads to an answer; where it does not, any is looked for first
        found = solve(program, "mip", gap=w.gap, nodes=_NODES, jump=jump)
        if len(found.x):
            plan[chosen] = (found.x > 0.5).reshape(jobs, rounds)
            if (plan.sum(axis=1) == counts).all() and (w.gang @ plan <= w.gpus).all():  # given up, it may have nothing that does
                return plan
    return None


def pack_rounds(w: PlanningWindow, counts: Ints) -> Bools:
    """Rounds for counts that do not fit exactly: by priority, each as early as there is room, what does not fit is left out."""
    plan = np.zeros((len(w.gang), w.rounds), dtype=np.bool_)
    room = np.full(w.rounds, w.gpus)
    for k in np.argsort(-w.priority, kind="stable").tolist():
        where = np.flatnonzero(room >= w.gang[k])[: counts[k]]
        plan[k, where] = True
        room[where] -= w.gang[k]
    return plan


def fill_idle(w: PlanningWindow, plan: Bools) -> Bools:
    """Idle GPUs of every round go to jobs not planned there, the longest first."""
    filled = plan.copy()
    order = np.argsort(-w.remaining, kind="stable")
    for at in range(plan.shape[1]):
        left = w.gpus - int(w.gang[plan[:, at]].sum())
        for k in order.tolist():
            if left <= 0:
                break
            if not filled[k, at] and w.gang[k] <= left:
                filled[k, at] = True
                left -= int(w.gang[k])
    return filled


def settle_ties(w: PlanningWindow, plan: Bools) -> Bools:
    """Jobs that are alike change places until the one listed first has the earliest rounds: no plan is worse for it."""
    alike: dict[tuple[float, ...], list[int]] = {}
    for k, each in enumerate(zip(w.gang, w.epochs, w.done, w.duration, w.remaining, w.priority)):
        alike.setdefault(tuple(map(float, each)), []).append(k)
    settled = plan.copy()
    for members in alike.values():
        settled[members] = sorted((plan[k].tolist() for k in members), reverse=True)
    return settled


def plan_window(w: PlanningWindow) -> Bools:
    """Which jobs run in which round of the window."""
    return plan_with_cut(w)[0]


def plan_with_cut(w: PlanningWindow) -> tuple[Bools, bool]:
    """The same, and whether the rounds per job could not be packed, so that they were cut by priority."""
    counts, _ = plan_counts(w)
    plan = rank_rounds(w, counts)
    return fill_idle(w, settle_ties(w, pack_rounds(w, counts) if plan is None else plan)), plan is None


# `shockwave`: plan a window of rounds so that jobs progress alike, late ones first and none left for the end (NSDI 2023).

FUTURES = ("learned", "told")
_EPOCHS = 20.0  # parts in which the work of a job without epochs is counted
_BEHIND = 1e6  # jobs that are not planned in this round rank behind all that are, and fill what is idle


@dataclass(frozen=True)
class Shockwave(Policy):
    """The product of progress over a window of rounds, weighted by lateness against an equal share, less the longest job left.

    In the regime `shockwave` jobs change their batch size, and the window is planned from predicted epochs. Elsewhere a job's work is
    counted in twenty equal parts and its remaining time is the estimate.
    """

    name = "shockwave"
    paper = "Zheng, Pan, Khan, Venkataraman, Akella: Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation (NSDI 2023)"
    needs = frozenset({"remaining"})

    window: int = parameter(20, "rounds that a plan looks ahead", low=1, unit="rounds")
    makespan: float = parameter(1e-3, "weight of the longest job left after the window", low=0.0)
    power: float = parameter(12.0, "how much more a job counts the later it is")
    largest: float = parameter(1.0, "ratio to the fair finish time above which a job is late", above=0.0)
    beat: int = parameter(8, "rounds after which a new plan is made although no job came or went", low=1, unit="rounds")
    futures: str = parameter("learned", "regime shockwave: whether batch sizes to come are 'told' or 'learned'", one_of=FUTURES)
    calibrate: bool = parameter(False, "regime shockwave: correct durations as the artifact does, waiting included")
    compat: str = parameter("", "'shockwave': as the artifact does (told futures, calibration)", one_of=("", "shockwave"))

    @property
    def knows_futures(self) -> bool:
        """Whether the planner knows batch sizes that a job has not had yet."""
        return self.compat == "shockwave" or self.futures == "told"

    @property
    def calibrates(self) -> bool:
        return self.compat == "shockwave" or self.calibrate

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, length = snapshot.jobs, snapshot.round or 120.0
        number = floor(snapshot.now / length + 1e-9)
        if not len(jobs):
            return Plan.rank(np.zeros(0), memory=None)
        ids = jobs.ids
        memory: dict[str, Any] = snapshot.memory or {"number": number, "members": [], "plan": [], "targets": {}}
        row, changed = number - int(memory["number"]), ids != memory["members"]
        targets = memory["targets"]
        if changed or row >= min(self.beat, self.window) or row >= len(memory["plan"]):
            share = min(1.0, snapshot.cluster.gpus / len(jobs))
            targets = self._fair_finishes(snapshot, targets, share, number, changed)
            memory = self._plan(snapshot, targets, share, number, length)
            row = 0
        chosen = set(memory["plan"][row])
        remaining = jobs.remaining
        key = np.where([name in chosen for name in ids], np.arange(len(jobs)), _BEHIND - remaining / (1.0 + remaining.max()))
        return Plan.rank(key, valid_until=(number + 1) * length, memory=memory)

    def _fair_finishes(self, snapshot: Snapshot, known: dict[str, Any], share: float, number: int, changed: bool) -> dict[str, Any]:
        """Per job: (weight, weighted sum, last estimate, its round) of when it would end with an equal share all along."""
        jobs, found = snapshot.jobs, {}
        fair = jobs.arrival + (jobs.attained + jobs.remaining) / share
        for name, value in zip(jobs.ids, fair.tolist()):
            weight, total, last, since = known.get(name, (0.0, 0.0, value, number))
            weight, total = weight + number - since, total + last * (number - since)
            found[name] = (weight, total, value if changed else last, number)
        return found

    def _plan(self, snapshot: Snapshot, targets: dict[str, Any], share: float, number: int, length: float) -> dict[str, Any]:
        jobs = snapshot.jobs
        remaining = np.maximum(jobs.remaining, 1.0)
        whole = np.maximum(jobs.done + remaining, 1.0)
        target = np.array([_target(*targets[name]) for name in jobs.ids])
        # both counted from the arrival, as completion times are: a ratio of two moments would depend on when the clock began
        lateness = (snapshot.now - jobs.arrival + remaining / share) / np.maximum(target - jobs.arrival, 1e-9)
        weight = priorities(lateness, remaining, largest=self.largest, power=self.power, length=length)
        window = PlanningWindow(
            jobs.gpus, np.full(len(jobs), _EPOCHS), np.minimum(_EPOCHS * jobs.done / whole, _EPOCHS), whole / _EPOCHS, remaining, weight,
            int(snapshot.cluster.gpus), self.window, length, self.makespan,
        )  # fmt: skip
        plan = plan_window(window)
        ids = jobs.ids
        rows = [[ids[k] for k in np.flatnonzero(plan[:, at])] for at in range(self.window)]
        return {"number": number, "members": ids, "plan": rows, "targets": targets}


def _target(weight: float, total: float, last: float, since: int) -> float:
    """The fair finish time so far, by how long each estimate stood, and a little of the last."""
    return 0.9 * (total / weight if weight > 0 else last) + 0.1 * last
