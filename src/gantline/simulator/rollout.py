"""Many futures of one instant: what becomes of the jobs of a snapshot under one policy or several, with work drawn around its estimates.

A snapshot holds no truth, so a rollout takes estimates as true, or draws. Draws are counter-based: future number 7 has the same work and
the same newcomers whatever the policy, the order and the processor. An order whose key is a sum of columns runs in one compiled loop that
counts devices (`drivers.futures`), where placement cannot matter; everything else is rolled forward by the engine (`roll_forward`), with
the same result and more slowly.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.errors import GantlineError, RefusedError, UsageError
from gantline.core.facts import Costs
from gantline.core.inputs import Input, Submit
from gantline.core.phases import FUTURE
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.rng import stream
from gantline.core.snapshot import Snapshot
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.drivers.futures.case import CountedFutures, FutureBounds, case_of, run_counted
from gantline.engine.drivers.futures.places import FutureAmount, FutureCase, Newcomer
from gantline.engine.drivers.key_reading import read_key
from gantline.policies.admission.rules import AdmissionRule, find_admission
from gantline.simulator.roll_forward import Rolled, RollForward, private_tables
from gantline.simulator.uncertainty import Uncertainty
from gantline.traces.files.policies import GivenPlacement, policy_of

# --- newcomers of many futures as one table -----------------------------------------------------------------------------
_PLAIN = frozenset({"id", "gpus", "estimate", "priority", "user", "queue", "model"})  # what leaves a job one way to run


class NewcomerTable(NamedTuple):
    """Newcomers by (future, what, number); those that are missing arrive never. `sizes` are the gang sizes that occur."""

    table: Floats
    sizes: tuple[int, ...]


def newcomer_table(futures: Sequence[list[Input]]) -> NewcomerTable | None:
    """The table; None: some input is more than a job with devices and an amount of work."""
    most = max((len(each) for each in futures), default=0)
    table = np.zeros((len(futures), len(Newcomer), most))
    table[:, Newcomer.ARRIVAL] = np.inf
    table[:, Newcomer.NEED] = 1.0
    sizes: set[int] = {1} if most else set()
    for number, each in enumerate(futures):
        for place, one in enumerate(sorted(each, key=lambda value: value.time)):
            if not isinstance(one, Submit) or one.work is None or one.ids or not one.job.keys() <= _PLAIN:
                return None
            need = int(one.job.get("gpus", 1))
            estimates = float(one.job.get("estimate", one.work)), float(one.job.get("priority", 0.0))
            table[number, :, place] = (one.time, need, one.work, *estimates)
            sizes.add(need)
    return NewcomerTable(table, tuple(sorted(sizes)))


# --- one policy as it would decide from an instant on -------------------------------------------------------------------
Known = dict[Any, Any]
"""What candidates of one rollout share."""
AS_IT_IS = object()
"""The memory that the snapshot carries."""
BEFORE_ANY_CAME = object()
"""Under this candidates find the jobs of the snapshot as if none had come yet: to make these is most of what a case costs."""


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


@dataclass(frozen=True)
class Prepared:
    """A candidate at an instant."""

    name: str
    snapshot: Snapshot
    rules: RunRules
    policy: Policy
    admission: AdmissionRule
    load_limit: float  # in GPUs
    about: tuple[Any, ...]  # what candidates share that differ by their admission limit alone; their objects live as long as they do

    @staticmethod
    def of(snapshot: Snapshot, one: Candidate, costs: Costs | None, known: Known) -> Prepared:
        """The candidate as this run would have it; those of one placement rule share what is `known`."""
        placed = one.placement if isinstance(one.placement, str) else id(one.placement)  # rules are alike when they are the same
        if placed not in known:
            known[placed] = RunRules.at(snapshot, one.placement, costs), snapshot.cluster.gpus, one.placement
        rules, gpus, _ = known[placed]
        admission = find_admission(one.admission)
        if admission.has_quota:
            raise RefusedError("quotas belong to the run", where=f"candidate '{one.name}'", fix="use accept-all or load-limit:X")
        policy = rules.policy(one.policy, rules.guard(one.policy))
        remembering = snapshot if one.memory is AS_IT_IS else replace(snapshot, memory=one.memory)
        about = (id(one.policy), id(rules), id(one.memory))
        return Prepared(one.name, remembering, rules, policy, admission, admission.most_gpus(gpus), about)

    def case(self, bounds: FutureBounds, known: Known) -> FutureCase | None:
        """The instant as the counting loop takes it; None: it cannot run this policy, this run or this instant.

        Candidates share what is `known`: their jobs, and the whole case where they differ by their admission limit alone.
        """
        if self.about not in known:
            known[self.about] = self._case(bounds, known)
        case: FutureCase | None = known[self.about]
        if case is None or self.load_limit == bounds.load_limit:
            return case
        amount = case.amount.copy()
        amount[FutureAmount.LOAD_LIMIT] = self.load_limit
        return case._replace(amount=amount)

    def _case(self, bounds: FutureBounds, known: Known) -> FutureCase | None:
        """The key is read from the jobs as if none had come yet."""
        policy = self.policy
        if not isinstance(policy, OrderPolicy):
            return None
        if BEFORE_ANY_CAME not in known:
            instant, tables = private_tables(self.snapshot)
            tables.jobs.phase[:], tables.jobs.locked[:] = FUTURE, 0
            known[BEFORE_ANY_CAME] = instant.jobs.rows, tables
        rows, tables = known[BEFORE_ANY_CAME]
        found = read_key(policy, self.rules.state(tables.copy()), self.rules.guard(policy))
        if found.key is None:
            return None
        return case_of(self.snapshot, self.rules, policy, found.key, None if found.numbers is None else found.numbers[rows], bounds)

    def roll_forward(self, held: Sequence[int]) -> RollForward:
        """The instant as the engine takes it; `held` are the positions of jobs that admission has not let in yet."""
        return RollForward(self.snapshot, self.policy, self.rules, self.admission, held if math.isfinite(self.load_limit) else ())


# --- the futures --------------------------------------------------------------------------------------------------------
__all__ = ["AS_IT_IS", "Candidate", "Futures", "Rollout", "rollout"]

Newcomers = Callable[[np.random.Generator], Iterable[Input]]
_AT_ONCE = 256  # futures of a batch: what they need stays in the cache, and a budget of seconds is looked at in between


@dataclass(frozen=True)
class Futures:
    """What becomes of each job, by (future, position in the snapshot), under one policy; infinity: not before `until`."""

    policy: str
    start: Floats  # when it next holds devices; now, for those that hold some
    finish: Floats
    decisions: Floats  # of each future
    counted: bool = True  # whether the compiled loop has counted devices; else the engine has placed gangs
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
    rows = newcomer_table(coming if newcomers is not None else coming[:1]) if not events and not spending else None
    is_drawn = not isinstance(draws, np.ndarray) and draws > 0
    limits = _Limits(until, costs, tuple(held), seconds, {}, spending, rows, is_drawn)
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
    known: dict[Any, Any]  # cases and rules that candidates share
    spending: bool
    rows: NewcomerTable | None  # the newcomers, where futures that count devices can say all that enters
    is_drawn: bool  # whether each future has times and speeds of its own


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


def _futures(
    snapshot: Snapshot, one: Candidate, work: Floats, coming: Sequence[list[Input]], events: list[Input], limits: _Limits
) -> Futures:
    """The futures under one policy: counted, where that is enough."""
    rows = limits.rows
    prepared = Prepared.of(snapshot, one, limits.costs, limits.known)
    bounds = FutureBounds(limits.until, held=limits.held, sizes=() if rows is None else rows.sizes)
    case = prepared.case(bounds, limits.known) if rows is not None else None
    if case is None:
        return _by_engine(prepared, work, [[*events, *each] for each in coming], limits)
    parts: list[CountedFutures] = []
    budget, at, step = CpuBudget(limits.seconds), 0, len(work) if limits.seconds == math.inf else _AT_ONCE
    while at < len(work) and not (parts and budget.over):
        part = slice(at, min(at + step, len(work)))
        others = None if rows is None or not rows.sizes else rows.table[part]
        parts.append(run_counted(case, work[part], others))
        at = part.stop
    if any(part.gave_up for part in parts):
        return _by_engine(prepared, work, [[*events, *each] for each in coming], limits)
    start, finish, decisions = (np.concatenate([getattr(part, name) for part in parts]) for name in ("start", "finish", "decisions"))
    return Futures(one.name, start, finish, decisions)


def _by_engine(prepared: Prepared, work: Floats, inputs: Sequence[list[Input]], limits: _Limits) -> Futures:
    """One future after the other, by the engine."""
    rolled: list[Rolled] = []
    budget, here = CpuBudget(limits.seconds), prepared.roll_forward(limits.held)
    for number, (line, events) in enumerate(zip(work, inputs)):
        if rolled and budget.over:
            break
        rolled.append(here.roll(line, limits.until, events, limits.spending, number if limits.is_drawn else None))
    incidents = dict.fromkeys(incident for one in rolled for incident in one.incidents)
    start, finish = (np.array([getattr(one, name) for one in rolled]) for name in ("start", "finish"))
    decisions = np.array([one.decisions for one in rolled], dtype=np.float64)
    dollars, kwh = (np.array([getattr(one, name) for one in rolled]) if limits.spending else None for name in ("dollars", "kwh"))
    return Futures(prepared.name, start, finish, decisions, counted=False, incidents=tuple(incidents), dollars=dollars, kwh=kwh)
