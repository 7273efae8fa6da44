"""Why a job waits, which jobs are ahead of it, and which change would start it.

The answer is found by asking: the policy decides on the present as it is, and again with one thing about the job changed. What it and the
engine would then do is the answer, so that it holds for every policy, memory and placement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.core.errors import GantlineError, NotFoundError, near
from gantline.core.fields import human_seconds
from gantline.core.inputs import Action, JobRequest, SetJob, Submit
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables, tables_behind
from gantline.engine.advance import arrive
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.engine import Engine
from gantline.engine.lists import RowCount
from gantline.lab.questions.forecast import Forecast, Setup, forecast
from gantline.simulator.roll_forward import JobOutcome, carry_out, carry_out_on, private_tables, state_on
from gantline.simulator.rollout import CpuBudget
from gantline.traces.files.policies import GivenPlacement


@dataclass(frozen=True)
class Ahead:
    """A job that has, or would get, devices before the one in question."""

    job: str
    gpus: int
    holds: bool  # devices, after the decision; else it waits too, but ranks before
    ends_in: float  # seconds, as estimated; NaN: not known


@dataclass(frozen=True)
class Explanation:
    """The answer. `act` is what the next decision does with the job; `why` the binding constraint, where it waits."""

    job: str
    act: str
    why: str
    devices: tuple[int, ...] = ()
    ahead: tuple[Ahead, ...] = ()
    changes: tuple[StepChange, ...] = ()  # each would start it now
    searched: bool = False  # whether such changes were searched: there was time for it
    waits_for: tuple[str, ...] = ()  # jobs that make room for it when they end, by the estimates
    expected: Forecast | None = None
    unknown: str = ""  # why no start is expected: the time for that was over
    in_charge: str = ""  # which policy decides and why, where one chooses among several
    notes: tuple[str, ...] = field(default=())

    def lines(self) -> list[str]:
        """The answer as sentences."""
        if self.act in RUNS:
            lines = [f"{self.job} {self.act}" + (f" on devices {', '.join(map(str, self.devices))}" if self.devices else "")]
        else:
            lines = [f"{self.job} {self.act}: {self.why}"]
        holders = [one for one in self.ahead if one.holds]
        if holders:
            lines.append("devices are with " + "; ".join(_holder(one) for one in holders[:5]) + _more(len(holders) - 5))
        waiting = [one.job for one in self.ahead if not one.holds]
        if waiting:
            lines.append(
                f"{len(waiting)} {'waits' if len(waiting) == 1 else 'wait'} ahead of it: "
                + ", ".join(waiting[:5])
                + _more(len(waiting) - 5)
            )
        lines += self.prospects()
        if self.expected is not None:
            lines.append(self.expected.message())
        elif self.unknown:
            lines.append(f"expected start {self.unknown}")
        return [*lines, *([self.in_charge] if self.in_charge else []), *self.notes]

    def prospects(self) -> list[str]:
        """What would start it, as sentences."""
        lines = [change.sentence for change in self.changes]
        if self.act in RUNS:
            return lines
        if self.waits_for:
            return [*lines, "it would start when " + " and ".join(self.waits_for) + (" end" if len(self.waits_for) > 1 else " ends")]
        return lines or (["no single change tried would start it now"] if self.searched else [])


def explain(snapshot: Snapshot, policy: Policy, job: str, setup: Setup | None = None) -> Explanation:
    """Explain one active job."""
    setup, ids = setup or Setup(), snapshot.jobs.ids
    if job not in ids:
        raise NotFoundError(f"no job '{job}' waits or runs", where="explain", fix=near(job, ids))
    place = ids.index(job)
    plan = policy.decide(snapshot)
    outcomes = carry_out(snapshot, plan, setup.placement)
    own, chosen = outcomes[place], "" if plan.in_charge is None else str(plan.in_charge)
    rank = plan.ranking.key if plan.ranking is not None and own.act not in RUNS else None
    ahead = tuple(_ahead(snapshot, outcomes, place, rank)) if own.act not in RUNS else ()
    found = Explanation(job, own.act, own.why, own.devices, ahead, in_charge=chosen)
    budget = CpuBudget(setup.seconds)
    if setup.samples != 0:
        late = f"not within {setup.seconds:g} s of CPU"
        found = replace(found, unknown=late) if budget.over else replace(found, expected=forecast(snapshot, policy, [job], setup)[0])
    if own.act in RUNS or budget.over:
        return found
    changes = tuple(step_changes(snapshot, policy, place, setup.placement))
    return replace(found, changes=changes, searched=True, waits_for=() if budget.over else _makes_room(snapshot, policy, place, setup))


def _ahead(snapshot: Snapshot, outcomes: list[JobOutcome], place: int, rank: Floats | None) -> Iterator[Ahead]:
    """Jobs that hold devices after the decision, soonest to end first; then jobs that wait and rank before it, in order."""
    jobs, ids = snapshot.jobs, snapshot.jobs.ids  # columns are gathered when they are read: once, not for each job
    rate = np.where(jobs.rate > 0, jobs.rate, np.nan)
    left, gpus = np.maximum(jobs.remaining, 0.0) / rate, jobs.gpus
    left[np.isin(jobs.rows, list(tables_behind(snapshot).unestimated))] = np.nan  # a guess is not shown as a number
    holders = [k for k, one in enumerate(outcomes) if one.act in RUNS and k != place]
    for k in sorted(holders, key=lambda k: (math.inf if math.isnan(left[k]) else float(left[k]), k)):
        yield Ahead(ids[k], len(outcomes[k].devices), True, float(left[k]))
    if rank is None:
        return
    waits = [k for k, one in enumerate(outcomes) if one.act not in RUNS and (rank[k], k) < (rank[place], place)]
    for k in sorted(waits, key=lambda k: (rank[k], k)):
        yield Ahead(ids[k], int(gpus[k]), False, math.nan)


def _makes_room(snapshot: Snapshot, policy: Policy, place: int, setup: Setup) -> tuple[str, ...]:
    """Jobs that end at the instant at which the job starts, if all goes as estimated."""
    (rolled,) = replace(setup, newcomers=None).futures(snapshot, policy, draws=0)
    start = float(rolled.start[place])
    if not math.isfinite(start):
        return ()
    before = [k for k in range(len(rolled.finish)) if k != place and rolled.finish[k] <= start + 1e-6]
    latest = max((float(rolled.finish[k]) for k in before), default=-math.inf)
    if latest < start - max(snapshot.round, 1e-6):  # it starts for another reason: its turn, an order that moves
        return ()
    ids = snapshot.jobs.ids
    return tuple(ids[k] for k in before if rolled.finish[k] >= latest - 1e-6)


def _holder(one: Ahead) -> str:
    ends = "" if math.isnan(one.ends_in) else f", about {human_seconds(one.ends_in)} left"
    return f"{one.job} ({one.gpus} GPU{'s' if one.gpus != 1 else ''}{ends})"


def _more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


# Which single change to a job would start it now: the present is decided and committed again, on a copy of its tables.

RUNS = ("starts", "stays", "moves", "resizes")
_AT_MOST = 8  # sizes that are tried


@dataclass(frozen=True)
class StepChange:
    """One thing that would be different."""

    what: str  # gpus, type, queue, priority
    value: Any
    sentence: str


class Changed:
    """The present, in which one job is changed."""

    def __init__(self, snapshot: Snapshot, policy: Policy, place: int, placement: GivenPlacement | None) -> None:
        self.instant, self.tables = private_tables(snapshot)
        self.rules = RunRules.at(self.instant, placement)
        self.policy, self.placement, self.place = self.rules.policy(policy), placement, place
        self.row, self.job = int(self.instant.jobs.rows[place]), self.instant.jobs.ids[place]

    def starts(self, change: Callable[[Engine], object]) -> bool:
        """Whether the next decision starts the job after that change."""
        instant, tables = self.instant, self.tables.copy()
        state = state_on(tables, instant, self.rules)
        try:
            change(self.rules.engine(state, self.policy))
            altered = state.snapshot()
            return carry_out_on(altered, self.policy.decide(altered), self.placement)[self.place].act in RUNS
        except GantlineError:
            return False  # such a job cannot be meant here

    def sized(self, size: int) -> bool:
        least = min(size, int(self.tables.I[Job.MIN_GPUS, self.row]))
        return self.starts(lambda engine: engine.apply(JobRequest(self.instant.now, Action.RESIZE, self.job, size, least, size)))

    def typed(self, kind: str) -> bool:
        def change(engine: Engine) -> None:
            t = engine.state.tables
            like = t.options[int(t.I[Job.OPTION_FIRST, self.row])]
            only = replace(like, type=t.cluster.types.index(kind), gpus=int(t.I[Job.GPUS, self.row]), rate_spread=None, nodes=0)
            t.I[Job.OPTION_FIRST, self.row], t.I[Job.OPTION_COUNT, self.row] = t.options.append(only), 1
            t.I[Job.SMALLEST, self.row] = only.gpus
            engine.state.rebuild()

        return self.starts(change)

    def queued(self, queue: str) -> bool:
        return self.starts(lambda engine: engine.apply(SetJob(self.instant.now, self.job, queue=queue)))

    def preferred(self, priority: float) -> bool:
        return self.starts(lambda engine: engine.apply(SetJob(self.instant.now, self.job, priority=priority)))


def step_changes(snapshot: Snapshot, policy: Policy, place: int, placement: GivenPlacement | None) -> Iterator[StepChange]:
    """Changes of one thing about the job after which the next decision would start it; of sizes the largest."""
    trial, asks = Changed(snapshot, policy, place, placement), int(snapshot.jobs.gpus[place])
    sizes = [size for size in range(asks - 1, 0, -1) if size == asks - 1 or size & (size - 1) == 0][:_AT_MOST]
    for size in sizes:
        if trial.sized(size):
            yield StepChange("gpus", size, f"with {size} GPUs in place of {asks} it would start now")
            break
    for kind in _other_types(trial.tables, trial.row):
        if trial.typed(kind):
            yield StepChange("type", kind, f"on {kind} it would start now")
    own = snapshot.queues[int(snapshot.jobs.queue[place])]
    for queue in dict.fromkeys([*snapshot.queue_tree, *snapshot.queues]):
        if queue and queue != own and trial.queued(queue):
            yield StepChange("queue", queue, f"in queue '{queue}' it would start now")
    top, has = float(snapshot.jobs.priority.max()) + 1.0, float(snapshot.jobs.priority[place])
    if trial.preferred(top):
        yield StepChange("priority", top, f"with priority {top:g} it would start now (it has {has:g})")


def _other_types(tables: Tables, row: int) -> list[str]:
    first, count = int(tables.I[Job.OPTION_FIRST, row]), int(tables.I[Job.OPTION_COUNT, row])
    listed = {tables.cluster.types[tables.options[option].type] for option in range(first, first + count)}
    return [kind for kind in tables.cluster.types if kind not in listed]


# When a job would start if it were submitted now: the present with one more job, decided and rolled forward.

NAME = "this job"


def with_job(snapshot: Snapshot, policy: Policy, job: Mapping[str, object], placement: GivenPlacement | None = None) -> Snapshot:
    """The present in which that job has just arrived; it is written as in the `jobs` of a snapshot."""
    instant, tables = private_tables(snapshot)
    tables = tables.copy()
    rules = RunRules.at(instant, placement)
    state = state_on(tables, instant, rules)
    state.lists.number[RowCount.NEXT] = state.lists.number[RowCount.HELD] = tables.count
    rules.engine(state, rules.policy(policy)).apply(Submit(instant.now, dict(job)))
    arrive(tables.F[:, : tables.count], tables.I, state.lists, instant.now, math.inf)
    state.rebuild()
    return state.snapshot()


def submission(snapshot: Snapshot, policy: Policy, job: Mapping[str, Any], setup: Setup) -> dict[str, Any]:
    """Its place in the queue, why it would wait, when it is expected to start.

    A job without an estimate has no expected end, one behind jobs of unknown length no expected start; `unknown` says why.
    """
    setup = setup.at(snapshot)
    then = with_job(snapshot, policy, {**job, "id": NAME}, setup.placement)
    found = explain(then, policy, NAME, setup)
    ahead = [one for one in found.ahead if not one.holds]
    expected, waits = found.expected, found.act not in RUNS
    unknown = found.unknown if expected is None else expected.unknown
    fields: dict[str, Any] = {
        "act": found.act, "why": found.why, "position": len(ahead) + 1 if waits else None, "estimated": "estimate" in job,
        "waiting": int((~then.jobs.running).sum()), "ahead": [asdict(one) for one in found.ahead[:100]],
        "changes": [asdict(one) for one in found.changes], "waits_for": list(found.waits_for),
        "expected": None if expected is None or unknown else expected.as_json(), "unknown": unknown,
    }  # fmt: skip
    lines = [f"it would wait, as number {len(ahead) + 1}: {found.why}" if waits else "it would start at once"]
    if expected is not None:
        lines.append(expected.message())
    elif unknown:
        lines.append(f"expected start {unknown}" if waits else f"expected end {unknown}")
    lines += found.prospects()
    used = expected.samples if expected is not None else 0
    notes = [f"note: {setup.used(used)} of {setup.over}"] if used else []
    return {**fields, "samples": used, "lines": [*lines, *notes]}
