"""Which single change to a job would start it now: the present is decided and committed again, on a copy of its tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from gantline.core.columns import Job
from gantline.core.errors import GantlineError
from gantline.core.inputs import Action, JobRequest, SetJob
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.tables import Tables
from gantline.engine.assembly.rules import RunRules
from gantline.engine.engine import Engine
from gantline.simulator.from_here import private_tables, state_on
from gantline.simulator.outcome import carry_out_on
from gantline.traces.files.placements import GivenPlacement

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
