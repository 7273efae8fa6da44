"""Gavel in ideal mode: every job has a share of the time on each type, and no device in particular (Narayanan et al., OSDI 2020)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.columns import Job
from gantline.core.inputs import NodeEvent
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate

V100, K80 = 0, 1
CLUSTER = "v100:1,k80:1"
WAYS = "v100:1=100|k80:1=400"


@dataclass(frozen=True)
class Allocation(Policy):
    """Shares by number of jobs and job id: {jobs: {id: {option: share}}}."""

    shares: dict[int, dict[str, dict[int, float]]] = field(default_factory=dict)

    def decide(self, snapshot: Snapshot) -> Plan:
        table = self.shares[len(snapshot.jobs)]
        rows = [
            Assignment(k, option, share=share) for k, name in enumerate(snapshot.jobs.ids) for option, share in table.get(name, {}).items()
        ]
        return Plan.assign(rows, valid_until=FOREVER)


SHARES = {
    2: {"a": {V100: 0.6, K80: 0.4}, "b": {V100: 0.4, K80: 0.6}},
    1: {"a": {V100: 1.0}, "b": {V100: 1.0}},
}


def test_two_jobs_advance_by_the_sum_of_their_shares_and_the_last_gets_all() -> None:
    jobs = [job("a", work=100, options=WAYS), job("b", work=100, options=WAYS)]
    run = simulate(jobs, CLUSTER, Allocation(SHARES))

    first = 100 / (0.6 + 0.4 / 4)
    assert fact(run, "a", "finish") == pytest.approx(first)
    assert fact(run, "b", "finish") == pytest.approx(first + 100 - (0.4 + 0.6 / 4) * first)
    assert fact(run, "b", "restarts") <= 1  # from shares to a whole device of its own


def test_gpu_time_is_what_the_shares_were_worth() -> None:
    jobs = [job("a", work=70, options=WAYS), job("b", work=70, options=WAYS)]
    run = simulate(jobs, CLUSTER, Allocation(SHARES), until=100.0)

    assert fact(run, "a", "gpu_seconds") == pytest.approx(100.0)
    assert fact(run, "b", "gpu_seconds") == pytest.approx(100.0)
    assert run.summary["utilization"] == pytest.approx(1.0)
    assert [devices for _, _, devices, _ in spans(run, "a")] == [[]]


def test_shares_change_in_place() -> None:
    @dataclass(frozen=True)
    class Drift(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            early = snapshot.now < 50
            share = 0.2 if early else 0.8
            return Plan.assign([Assignment(0, V100, share=share)], valid_until=50.0 if early else FOREVER)

    run = simulate([job("a", options="v100:1=50", work=50)], CLUSTER, Drift(), costs="resume=60,move=60,resize=60")

    assert fact(run, "a", "finish") == pytest.approx(50.0 + 40.0 / 0.8)
    assert fact(run, "a", "gpu_seconds") == pytest.approx(50 * 0.2 + 50 * 0.8)
    assert (fact(run, "a", "restarts"), fact(run, "a", "preemptions")) == (0, 0)


def test_more_than_a_type_has_is_refused_type_by_type() -> None:
    table = {3: {"a": {V100: 0.5, K80: 0.5}, "b": {V100: 0.5, K80: 0.25}, "c": {V100: 0.1}}}
    table |= {2: {"b": {V100: 1.0}, "c": {K80: 1.0}}}  # type: ignore[dict-item]
    jobs = [job(name, work=100, options=WAYS) for name in "abc"]
    run = simulate(jobs, CLUSTER, Allocation(table), until=100.0)

    assert fact(run, "c", "state") == "waiting"
    assert fact(run, "b", "state") == "running"


def test_a_gang_and_a_share_do_not_use_the_same_device() -> None:
    @dataclass(frozen=True)
    class Both(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            rows = [Assignment(k, V100, share=0.5 if name == "half" else 1.0) for k, name in enumerate(snapshot.jobs.ids)]
            return Plan.assign(rows, valid_until=FOREVER)

    run = simulate([job(name, work=50, options="v100:1=50") for name in ("half", "gang")], CLUSTER, Both())

    assert fact(run, "half", "finish") == pytest.approx(100.0)
    assert fact(run, "gang", "first_start") == pytest.approx(100.0)


def test_a_packed_pair_in_ideal_mode_uses_its_device_once() -> None:
    class Pair(PerformanceModel):
        def granted(self, gang: Gang) -> float | None:
            return 0.7 if gang.mates else None

    @dataclass(frozen=True)
    class Packed(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            rows = []
            for k in range(len(snapshot.jobs)):
                rows += [Assignment(k, V100, share=0.5, group=0, mode=Mode.SPACE), Assignment(k, V100, share=0.25)]
            return Plan.assign(rows, valid_until=FOREVER)

    run = simulate([job(n, work=100, options=WAYS) for n in "ab"], CLUSTER, Packed(), performance=Pair(), until=90.0)

    assert run.summary["utilization"] == pytest.approx(0.5)  # 0.5 together and twice 0.25 of one of two devices
    assert run.tables.F[Job.DONE].tolist() == pytest.approx([90 * (0.5 * 0.7 + 0.25)] * 2)


def test_shares_shrink_when_a_node_is_lost() -> None:
    jobs = [job("a", work=100, options=WAYS), job("b", work=100, options=WAYS)]
    run = simulate(jobs, CLUSTER, Allocation(SHARES), node_events=[NodeEvent(20.0, "node1", "down")], until=60.0)

    assert [fact(run, name, "state") for name in "ab"] == ["waiting", "waiting"]  # the policy still asks for a type that is gone
    assert spans(run, "a")[0][3] == "resources"
