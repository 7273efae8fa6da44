"""Many futures of one instant: what becomes of the jobs of a snapshot under one policy or several, with work drawn around its estimates.

A snapshot holds no truth, so a rollout takes estimates as true, or draws. Draws are counter-based: future number 7 has the same work and
the same newcomers whatever the policy, the order and the processor. An order whose key is a sum of columns runs on records
(`drivers.futures`), where they can represent the instant; everything else is rolled forward by the engine (`roll_forward`), with the same
result and more slowly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import GantlineError, RefusedError, UsageError
from gantline.core.facts import Costs
from gantline.core.inputs import Input, Submit
from gantline.core.policy import Policy
from gantline.core.rng import stream
from gantline.core.snapshot import Snapshot
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.drivers.futures import Newcomer, Rolled
from gantline.models.uncertainty import Uncertainty
from gantline.policies.admission.rules import find_admission
from gantline.simulator.roll_forward import AS_IT_IS, RollForward, StartingPoint
from gantline.traces.files.policies import GivenPlacement, policy_of

# --- newcomers as columns -----------------------------------------------------------------------------------------------
_PLAIN = frozenset({"id", "gpus", "estimate", "priority", "user", "queue", "model"})  # what leaves a job one way to run


def as_newcomers(inputs: Iterable[Input]) -> Floats | None:
    """Jobs that are submitted in one future, see `Newcomer`; None: some input is more than a job with devices and an amount of work."""
    found = []
    for one in sorted(inputs, key=lambda value: value.time):
        if not isinstance(one, Submit) or one.work is None or one.ids or not one.job.keys() <= _PLAIN:
            return None
        estimate, priority = float(one.job.get("estimate", one.work)), float(one.job.get("priority", 0.0))
        found.append((one.time, one.work, estimate, priority, int(one.job.get("gpus", 1))))
    return np.array(found, dtype=np.float64).reshape(-1, len(Newcomer)).T


# --- one policy as it would decide from an instant on -------------------------------------------------------------------


@dataclass(frozen=True)
class Candidate:
    """A policy with what goes with it; `memory` is what it remembers (None: nothing)."""

    policy: Policy
    name: str = ""
    placement: GivenPlacement | None = None  # None: as the rollout says, else as the run does
    admission: str = "accept-all"
    memory: object = field(default=None, repr=False)


def candidate_of(given: Policy | str | Candidate, memory: object) -> Candidate:
    """A candidate from a policy or its name."""
    if isinstance(given, Candidate):
        return given if given.name else replace(given, name=given.policy.name or type(given.policy).__name__)
    policy = policy_of(given)
    return Candidate(policy, given if isinstance(given, str) else policy.name or type(policy).__name__, memory=memory)


# --- the futures --------------------------------------------------------------------------------------------------------
__all__ = ["AS_IT_IS", "Candidate", "Futures", "Rollout", "rollout"]

Newcomers = Callable[[np.random.Generator], Iterable[Input]]


@dataclass(frozen=True)
class Futures:
    """What becomes of each job, by (future, position in the snapshot), under one policy; infinity: not before `until`."""

    policy: str
    start: Floats  # when it next holds devices; now, for those that hold some
    finish: Floats
    decisions: Floats  # of each future
    on_records: bool = True  # whether the loop on records has run them; else the engine
    incidents: tuple[str, ...] = ()
    dollars: Floats | None = None  # of each future: what devices cost from now on, where spending was asked for
    kwh: Floats | None = None
    lost: str = ""  # why there are no futures: the policy has failed

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[Rolled]:
        for start, finish, decisions in zip(self.start, self.finish, self.decisions):
            yield Rolled(start, finish, int(decisions), self.incidents)


@dataclass(frozen=True)
class Rollout(Sequence[Futures]):
    """The futures of one instant, policy by policy."""

    now: float
    ids: tuple[str, ...]
    arrival: Floats
    futures: tuple[Futures, ...]

    def __len__(self) -> int:
        return len(self.futures)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, str):
            for one in self.futures:
                if one.policy == which:
                    return one
            raise UsageError(f"no policy '{which}' was rolled forward", where="rollout", fix=", ".join(one.policy for one in self.futures))
        return self.futures[which]

    def jct(self, which: Any = 0) -> Floats:
        """Mean time from submission to end in each future; infinity where some job does not end."""
        futures: Futures = self[which]
        if not len(self.ids):
            return np.zeros(len(futures))
        return np.asarray(np.mean(futures.finish - self.arrival, axis=1))


def rollout(
    snapshot: Snapshot,
    policies: Policy | str | Candidate | Sequence[Policy | str | Candidate],
    *,
    draws: int | Floats = 0,
    until: float = math.inf,
    newcomers: Newcomers | None = None,
    seed: int = 0,
    uncertainty: Uncertainty | None = None,
    placement: GivenPlacement | None = None,
    costs: Costs | None = None,
    inputs: Iterable[Input] = (),
    held: Sequence[int] = (),
    seconds: float = math.inf,
    spending: bool = False,
) -> Rollout:
    """Roll the snapshot forward under each policy; the snapshot is left alone.

    =================  ===============================================================================================
    ``draws``          how many futures, each with other amounts of work, and other times and speeds where the performance model has a
                       spread of them; 0: one, in which estimates are true. Or the work itself, by (future, job)
    ``until``          the instant, on the clock of the snapshot, at which futures end; else they end when all its jobs have
    ``newcomers``      called with a source of chance, it gives the jobs that are submitted in one future (`simulator.newcomers`)
    ``seed``           futures of the same seed and number are alike under all policies
    ``uncertainty``    how far work may be from its estimate, where there are draws
    ``placement``      another placement rule, ``costs`` other costs than the snapshot's, ``inputs`` what comes from outside in every future
    ``held``           positions of jobs that admission has not let in yet, for candidates with an admission limit
    ``spending``       also what devices cost in dollars and kWh (`Futures.dollars`, `Futures.kwh`): the engine rolls these futures forward
    ``seconds``        of CPU time, after which no further futures of a policy are begun; some are made in any case
    =================  ===============================================================================================

    A single policy goes on with the snapshot's memory; of several, each begins without, unless its `Candidate` says otherwise. Of several
    policies one that fails is left out, and its `Futures.lost` says why.
    """
    several = not isinstance(policies, str | Policy | Candidate)
    given: list[Policy | str | Candidate] = [policies] if isinstance(policies, str | Policy | Candidate) else [*policies]
    candidates = [candidate_of(one, None if several else AS_IT_IS) for one in given]
    work = _work(snapshot, draws, uncertainty or Uncertainty(), seed)
    coming: list[list[Input]] = [[]] * len(work)
    if newcomers is not None:
        coming = [list(newcomers(stream(seed, number, "newcomers"))) for number in range(len(work))]
    events = list(inputs)
    columns = [as_newcomers(each) for each in coming] if not events and not spending else [None]
    plain = [each for each in columns if each is not None]
    is_drawn = not isinstance(draws, np.ndarray) and draws > 0
    limits = _Limits(until, costs, tuple(held), seconds, spending, plain if len(plain) == len(columns) else None, is_drawn)
    found = []
    for one in candidates:
        one = one if one.placement is not None else replace(one, placement=placement)
        try:
            found.append(_futures(snapshot, one, work, coming, events, limits))
        except GantlineError as error:
            if not several:
                raise
            nothing = np.zeros((0, len(snapshot.jobs)))
            found.append(Futures(one.name, nothing, nothing, np.zeros(0), lost=str(error)))
    return Rollout(snapshot.now, tuple(snapshot.jobs.ids), np.array(snapshot.jobs.arrival), tuple(found))


class CpuBudget:
    """Seconds of CPU time; where there is no bound, no clock is read: a policy that rolls futures forward must not depend on one."""

    def __init__(self, seconds: float) -> None:
        self._end = math.inf if seconds == math.inf else time.process_time() + seconds

    @property
    def over(self) -> bool:
        """Whether they have been spent."""
        return self._end < math.inf and time.process_time() >= self._end


@dataclass(frozen=True)
class _Limits:
    until: float
    costs: Costs | None
    held: tuple[int, ...]
    seconds: float
    spending: bool
    newcomers: list[Floats] | None  # of each future; None: other things come as well, or spending counts
    is_drawn: bool  # whether each future has times and speeds of its own
    rules: dict[object, tuple[RunRules, int, GivenPlacement | None]] = field(default_factory=dict)  # what candidates share
    instants: dict[bool, StartingPoint] = field(default_factory=dict)  # the same: by whether jobs are held back


def _work(snapshot: Snapshot, draws: int | Floats, uncertainty: Uncertainty, seed: int) -> Floats:
    """Total work by (future, job)."""
    if isinstance(draws, np.ndarray):
        if draws.ndim != 2 or draws.shape[1] != len(snapshot.jobs):
            raise UsageError(f"work is of shape {draws.shape}, not (futures, {len(snapshot.jobs)})", where="rollout")
        return np.ascontiguousarray(draws, dtype=np.float64)
    if draws < 0:
        raise UsageError(f"{draws} draws", where="rollout", fix="zero or more")
    if draws == 0:
        return np.array(snapshot.jobs.estimate, dtype=np.float64)[None, :]
    return uncertainty.draw(snapshot, seed, 0, draws)


def _roll_forward(snapshot: Snapshot, one: Candidate, limits: _Limits) -> RollForward:
    """The instant under one candidate, as this run would have it; those of one placement rule share its rules."""
    placed = one.placement if isinstance(one.placement, str) else id(one.placement)  # rules are alike when they are the same
    if placed not in limits.rules:
        limits.rules[placed] = RunRules.at(snapshot, one.placement, limits.costs), snapshot.cluster.gpus, one.placement
    rules, gpus, _ = limits.rules[placed]
    admission = find_admission(one.admission)
    if admission.has_quota:
        raise RefusedError("quotas belong to the run", where=f"candidate '{one.name}'", fix="use accept-all or load-limit:X")
    policy = rules.policy(one.policy, rules.guard(one.policy))
    held = limits.held if math.isfinite(admission.most_gpus(gpus)) else ()
    if bool(held) not in limits.instants:
        limits.instants[bool(held)] = StartingPoint(snapshot, bool(held))
    return RollForward(limits.instants[bool(held)], policy, rules, admission, held, one.memory)


def _futures(
    snapshot: Snapshot, one: Candidate, work: Floats, coming: Sequence[list[Input]], events: list[Input], limits: _Limits
) -> Futures:
    """The futures under one policy, one after the other: on records, where they can be."""
    here, rolled = _roll_forward(snapshot, one, limits), list[Rolled]()
    quick = None if limits.newcomers is None else here.on_records(limits.until, limits.newcomers)
    budget, place = CpuBudget(limits.seconds), 0
    while place < len(work) and not (rolled and budget.over):
        found = None
        if quick is not None and limits.newcomers is not None:
            found = quick.roll(work[place], limits.newcomers[place])
            if found is None:  # the engine says why it gets nowhere
                quick, rolled, place = None, [], 0
        if found is None:
            draw = place if limits.is_drawn else None
            found = here.roll(work[place], limits.until, [*events, *coming[place]], limits.spending, draw)
        rolled.append(found)
        place += 1
    incidents = dict.fromkeys(incident for one in rolled for incident in one.incidents)
    start, finish = (np.array([getattr(one, name) for one in rolled]) for name in ("start", "finish"))
    decisions = np.array([one.decisions for one in rolled], dtype=np.float64)
    dollars, kwh = (np.array([getattr(one, name) for one in rolled]) if limits.spending else None for name in ("dollars", "kwh"))
    return Futures(one.name, start, finish, decisions, quick is not None, tuple(incidents), dollars, kwh)
