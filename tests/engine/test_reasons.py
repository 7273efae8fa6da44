"""The list of reasons is closed, and every one of them can occur: here is how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.engine.states import engine_of
from tests.jobs import job_row as job

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.core.inputs import Action, JobRequest, NodeEvent, Submit
from gantline.core.plan import Assignment, Misfit, Mode, Plan, Refusal
from gantline.core.policy import OrderPolicy, Policy
from gantline.core.reasons import Reason, sentence, slug
from gantline.core.snapshot import Snapshot
from gantline.engine.submissions import RejectedError
from gantline.simulator.simulate import simulate

SLUGS = {slug(reason): reason for reason in Reason}


@dataclass(frozen=True)
class Answers(Policy):
    """Answers as told: the k-th time with the k-th answer, then with the last; notes the reasons it sees."""

    answers: tuple[Callable[[Snapshot], Plan], ...] = ()
    seen: list[int] = field(default_factory=list)

    def decide(self, snapshot: Snapshot) -> Plan:
        self.seen.extend(snapshot.jobs.reason.tolist())
        return self.answers[min(snapshot.decision, len(self.answers)) - 1](snapshot)


@dataclass(frozen=True)
class Strict(OrderPolicy):
    """First come, first served, and nobody passes."""

    preempt: ClassVar[bool] = False
    misfit: ClassVar[Misfit] = Misfit.STOP

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.arrival


def everybody(snapshot: Snapshot) -> Plan:
    return Plan.rank(np.arange(len(snapshot.jobs), dtype=np.float64))


def nobody(snapshot: Snapshot) -> Plan:
    return Plan.rank(np.full(len(snapshot.jobs), np.inf))


def broken(snapshot: Snapshot) -> Plan:
    raise RuntimeError("no answer")


def told(jobs: list[dict[str, Any]], cluster: str, policy: Any, *answers: Callable[[Snapshot], Plan], **options: Any) -> set[Reason]:
    """Every reason that a policy saw, that ended an interval, or that stands at the end."""
    chosen = Answers(answers) if policy is None else policy
    run = simulate(jobs, cluster, chosen, **options)
    found = {SLUGS[one] for one in run.allocations["reason"].to_list()} | {Reason(int(one)) for one in run.tables.I[Job.REASON]}
    return found | {Reason(one) for one in (chosen.seen if isinstance(chosen, Answers) else ())}


def assigned(*rows: Assignment) -> Callable[[Snapshot], Plan]:
    return lambda snapshot: Plan.assign([row for row in rows if row.job < len(snapshot.jobs)])


def turn_of(job: int) -> Callable[[Snapshot], Plan]:
    return assigned(Assignment(job, group=0, mode=Mode.TIME))


def both_or_none(snapshot: Snapshot) -> Plan:
    return Plan.assign([Assignment(k, gpus=k + 1, group=0, mode=Mode.SPACE, together=True) for k in range(2)])


def rejected(request: dict[str, Any]) -> set[Reason]:
    with pytest.raises(RejectedError) as refused:
        simulate([job("a")], "1x2", "fifo", inputs=[Submit(1.0, request)])
    return {refused.value.reason}


BEHIND = [job("first"), job("large", 2, at=1.0), job("small", at=2.0)]
TWO = [job("a", 2), job("b", 2, 50.0, at=10.0)]
ONE = [job("a")]


def shared_device(snapshot: Snapshot) -> Plan:
    return Plan.assign([Assignment(k, devices=(0,), mode=Mode.SPACE) for k in range(len(snapshot.jobs))])


def one_gang_on_a_device() -> set[Reason]:
    """The plan has two gangs on a device, and the executor puts one there."""
    engine = engine_of([job("a"), job("b")], "1x1")
    engine.state.facts = replace(engine.state.facts, collocates=False)
    engine.commit(Plan.assign([Assignment(k, devices=(0,), mode=Mode.SPACE) for k in range(2)]))
    return {Reason(int(one)) for one in engine.state.tables.I[Job.REASON]}


HOW: dict[Reason, Callable[[], set[Reason]]] = {
    Reason.NONE: lambda: told(ONE, "1x1", None, everybody, until=50.0),
    Reason.ARRIVED: lambda: told(ONE, "1x1", None, everybody),
    Reason.RESOURCES: lambda: told(TWO, "1x2", "fifo", until=50.0),
    Reason.PRIORITY: lambda: told([job("a", 2, 10.0), job("b", 2)], "1x2", "srtf", until=5.0),
    Reason.FRAGMENTED: lambda: told([job("a", 2), job("b", 2), job("c", 2)], "2x3", "fifo", placement="consolidated", until=5.0),
    Reason.BLOCKED: lambda: told(BEHIND, "1x2", Strict(), until=50.0),
    Reason.NO_SUCH_TYPE: lambda: rejected({"id": "b", "options": [{"type": "tpu", "gpus": 1}]}),
    Reason.TOO_LARGE: lambda: rejected({"id": "b", "gpus": 3}),
    Reason.QUOTA: lambda: told([job("a"), job("b")], "1x2", "fifo", admission="quota:user=1", until=50.0),
    Reason.LOAD_LIMIT: lambda: told([job("a", 2), job("b", 2), job("c", 2)], "1x2", "fifo", admission="load-limit:1.0", until=50.0),
    Reason.HELD: lambda: told(ONE, "1x1", "fifo", inputs=[JobRequest(5.0, Action.HOLD, "a")]),
    Reason.DEFERRED: lambda: told(ONE, "1x1", None, nobody, until=50.0),
    Reason.PREEMPTED: lambda: told(TWO, "1x2", "srtf"),
    Reason.MOVED: lambda: told(ONE, "1x2", None, assigned(Assignment(0, devices=(0,))), assigned(Assignment(0, devices=(1,))), round=30.0),
    Reason.RESIZED: lambda: told(ONE, "1x2", None, assigned(Assignment(0, gpus=1)), assigned(Assignment(0, gpus=2)), round=30.0),
    Reason.NODE_LOST: lambda: told(ONE, "1x1", "fifo", node_events=[NodeEvent(5.0, "node0", "down")]),
    Reason.FINISHED: lambda: told(ONE, "1x1", "fifo"),
    Reason.STALE: lambda: told([job("a"), job("b", at=3.0)], "1x1", None, everybody, latency=5.0),
    Reason.INFEASIBLE: lambda: told(ONE, "1x1", None, assigned(Assignment(0, devices=(7,))), until=50.0),
    Reason.LEASE_ENDED: lambda: told(ONE, "1x1", None, assigned(Assignment(0, until=20.0)), assigned(), assigned(Assignment(0))),
    Reason.REFUSED: lambda: told(ONE, "1x1", None, lambda snapshot: Plan(refusals=(Refusal(0, "too late"),))),
    Reason.END: lambda: told(ONE, "1x1", "fifo", until=50.0),
    Reason.POLICY_FAILED: lambda: told(ONE, "1x1", None, broken, everybody),
    Reason.CANCELLED: lambda: told(ONE, "1x1", "fifo", inputs=[JobRequest(5.0, Action.CANCEL, "a")]),
    Reason.LIMIT: lambda: told(ONE, "1x1", None, assigned(Assignment(0, purpose="profile", limit=5.0)), everybody),
    Reason.REQUEUED: lambda: told(ONE, "1x1", "fifo", inputs=[JobRequest(5.0, Action.REQUEUE, "a")]),
    Reason.OVER_QUOTA: lambda: told([{**job("a", 3), "queue": "q"}], "1x4", "fifo", queues="q=2:0"),
    Reason.WINDOW: lambda: told(ONE, "1x1", "fifo", reserve="nodes=1,from=5,for=60", until=30.0),
    Reason.TURN: lambda: told([job("a"), job("b")], "1x1", None, turn_of(0), turn_of(1), round=30.0),
    Reason.TOGETHER: lambda: told([job("a"), job("b")], "1x1", None, both_or_none, until=50.0),
    Reason.DEVICE_MEMORY: lambda: told([{**job(name), "device_memory": 60} for name in "ab"], "1x1/80d", None, shared_device, until=50.0),
    Reason.CPUS: lambda: told([{**job(name), "cpus": 3.0} for name in "ab"], "1x2/4c", "fifo", until=50.0),
    Reason.MEMORY: lambda: told([{**job(name), "memory": 3.0} for name in "ab"], "1x2/4c/4g", "fifo", until=50.0),
    Reason.STORAGE: lambda: told([{**job(name), "storage": 3.0} for name in "ab"], "1x2/4c/4g/4s", "fifo", until=50.0),
    Reason.ONE_GANG: one_gang_on_a_device,
    Reason.LOSS: lambda: told(ONE, "1x1", "fifo", inputs=[JobRequest(5.0, Action.FINISH, "a")]),
}


def test_the_list_is_whole() -> None:
    assert set(HOW) == set(Reason)
    assert all(sentence(reason) for reason in Reason)


@pytest.mark.parametrize("reason", HOW, ids=lambda reason: slug(reason))
def test_it_can_occur(reason: Reason) -> None:
    assert reason in HOW[reason]()


@pytest.mark.parametrize("cluster", ["1x2", "1x2,other:1x1"])
def test_whoever_stands_behind_one_that_does_not_fit_is_told_so_by_every_loop(cluster: str) -> None:
    def strictly(snapshot: Snapshot) -> Plan:
        return Plan.rank(snapshot.jobs.arrival, misfit=Misfit.STOP, preempt=False)

    behind = [{**one, "type": "gpu"} for one in BEHIND]
    for policy, executor in ((Answers((strictly,)), "instant"), (Answers((strictly,)), "acknowledged"), (Strict(), "instant")):
        run = simulate(behind, cluster, policy, until=50.0, executor=executor)
        assert run.tables.I[Job.REASON, 1:].tolist() == [Reason.RESOURCES, Reason.BLOCKED]


def test_a_job_held_by_a_quota_is_not_told_the_load_limit() -> None:
    assert Reason.LOAD_LIMIT not in HOW[Reason.QUOTA]()
