"""Snapshots and plans as JSON: nothing is lost, a person can write one, a mistake is named by its path."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.assigning import watched

from gantline import Assignment, Costs, Misfit, Mode, NodeEvent, Part, Plan, Policy, Refusal, Reservation, Snapshot, simulate
from gantline.core.errors import UsageError
from gantline.core.plan import Assignments
from gantline.core.snapshot_json import decode_plan, decode_snapshot, encode_plan, encode_snapshot
from gantline.policies.fifo import Fifo
from gantline.policies.registry import make_policy

COLUMNS = [
    "arrival",
    "gpus",
    "min_gpus",
    "max_gpus",
    "priority",
    "weight",
    "deadline",
    "user",
    "queue",
    "app",
    "model",
    "attained",
    "attained_gpu",
    "done",
    "waiting",
    "first_start",
    "last_start",
    "restarts",
    "preemptions",
    "estimate",
    "remaining",
    "phase",
    "running",
    "progressing",
    "held",
    "rate",
    "locked",
    "until",
    "option",
    "option_first",
    "option_count",
    "ids",
]
NOW = [
    "types",
    "nodes",
    "node_type",
    "node_gpus",
    "node_free",
    "node_up",
    "node_rack",
    "node_cpus_free",
    "node_memory_free",
    "device_node",
    "device_holder",
    "gpus",
    "free",
    "capacity",
]


def through_text(value: dict[str, Any]) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def assert_same(ours: Snapshot, theirs: Snapshot) -> None:
    """Everything that a policy can see is equal, bit by bit."""
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(ours.jobs, name), getattr(theirs.jobs, name), err_msg=name)
    for name in NOW:
        np.testing.assert_array_equal(getattr(ours.cluster, name), getattr(theirs.cluster, name), err_msg=name)
    np.testing.assert_array_equal(ours.jobs.rows, theirs.jobs.rows)
    for position in range(len(ours.jobs)):
        assert ours.jobs.options(position) == theirs.jobs.options(position)
        assert ours.jobs.devices(position) == theirs.jobs.devices(position)
        used = int(ours.jobs.option_first[position] + ours.jobs.option[position])
        if ours.jobs.option[position] >= 0:
            assert ours.options[used] == theirs.options[used]
    for name in ("now", "decision", "seed", "memory", "round", "regime", "reservations", "users", "queues", "apps", "models"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.cluster.description == theirs.cluster.description
    assert ours.rng("x").random() == theirs.rng("x").random()


@dataclass(frozen=True)
class Checked(Policy):
    """Decides as another policy does, and holds every snapshot and plan against its JSON form."""

    inner: Policy = field(default_factory=lambda: make_policy("fifo"))

    def decide(self, snapshot: Snapshot) -> Plan:
        restored = decode_snapshot(through_text(encode_snapshot(snapshot)))
        assert_same(snapshot, restored)
        plan, again = self.inner.decide(snapshot), self.inner.decide(restored)
        assert encode_plan(plan) == encode_plan(again)
        assert encode_plan(decode_plan(through_text(encode_plan(plan)))) == encode_plan(plan)
        return plan


@dataclass(frozen=True)
class Packer(Policy):
    """Grants of every kind: pairs on shared devices, sizes that nobody declared, exact devices, CPUs that change."""

    def decide(self, snapshot: Snapshot) -> Plan:
        wanted, free = [], snapshot.cluster.free + int(snapshot.jobs.held.sum())
        for job in range(min(len(snapshot.jobs), 6)):
            if job % 3 == 2 and job + 1 < len(snapshot.jobs) and free > 1:
                wanted.append(Assignment(job, gpus=1, group=job, mode=Mode.SPACE, fraction=0.5))
                free -= 1
            elif free > 1:
                wanted.append(Assignment(job, gpus=1 + job % 2, until=snapshot.now + 40.0))
                free -= 2
        return Plan.assign(wanted, memory={"asked": snapshot.jobs.ids})


@st.composite
def workloads(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = []
    for number in range(draw(st.integers(1, 12))):
        row = {
            "job": f"job {number}",
            "arrival": draw(st.floats(0, 300)),
            "gpus": draw(st.integers(1, 4)),
            "duration": draw(st.floats(0.1, 500)),
            "user": draw(st.sampled_from(["ana", "bo", ""])),
            "queue": draw(st.sampled_from(["a/b", "c"])),
            "deadline": draw(st.none() | st.floats(400, 900)),
            "cpus": draw(st.floats(0, 4)),
        }
        rows.append(row)
    return sorted(rows, key=lambda row: float(row["arrival"]))


@settings(max_examples=settings().max_examples // 3)
@given(
    jobs=workloads(),
    cluster=st.sampled_from(["4x2", "a:2x4/8c/64g,b:3x2/4c@r1", "v100:5"]),
    policy=st.sampled_from(["fifo", "srtf", "las", "tiresias"]),
    length=st.sampled_from([None, 30.0]),
    fails=st.booleans(),
    seed=st.integers(0, 5),
)
def test_what_an_engine_lends_survives_json(jobs: Any, cluster: str, policy: str, length: float | None, fails: bool, seed: int) -> None:
    if cluster == "v100:5":
        jobs = [{**row, "type": "V100"} for row in jobs]
    events = [NodeEvent(50.0, "node1", "down"), NodeEvent(120.0, "node1", "up"), NodeEvent(150.0, "node0", "drain")] if fails else []
    inner = make_policy(policy, {"promote": 2.0} if policy == "tiresias" else {})
    costs = Costs(start=7.0, resume=11.0, checkpoint=40.0)
    run = simulate(jobs, cluster, Checked(inner), round=length, seed=seed, costs=costs, node_events=events, until=900.0)
    assert run.incidents == ()


@settings(max_examples=settings().max_examples // 3)
@given(jobs=workloads())
def test_shared_devices_and_sizes_nobody_declared_survive_json(jobs: Any) -> None:
    run = simulate(jobs, "2x4", Checked(Packer()), round=20.0, until=400.0)
    assert run.incidents == ()


def test_options_queues_metrics_and_memory_survive_json() -> None:
    snapshot = decode_snapshot(
        {
            "now": 100.0,
            "memory": {"__tuple__": [1, {"__float__": "nan"}, {"__array__": [1.0, 2.0], "dtype": "float64", "shape": [2]}]},
            "cluster": {"nodes": [{"name": "g", "type": "v100", "gpus": 2, "cpus": 8}, {"name": "c", "type": "cpu", "cpus": 20}],
                        "links": [{"a": "g", "b": "c", "bandwidth": 12.5}]},
            "queue_tree": [{"name": "a", "weight": 2.0, "quota": 8}, {"name": "b"}],
            "jobs": [
                {"id": "x", "queue": "a", "node": "c",
                 "options": [{"type": "v100", "gpus": 1, "cpus": 2}, {"type": "cpu", "gpus": 0, "cpus": 20, "rate": 0.1}],
                 "option": 1, "metrics": {"gpu_util": 0.7}},
                {"id": "y", "queue": "b", "options": [{"type": "V100", "gpus": 2, "nodes": 1, "rate": 2, "rate_spread": 1.5}]},
            ],
        }
    )  # fmt: skip
    again = decode_snapshot(through_text(encode_snapshot(snapshot)))
    assert again.jobs.metric("gpu_util")[0] == 0.7
    assert math.isnan(again.jobs.metric("gpu_util")[1])
    assert again.queue_tree == snapshot.queue_tree
    assert again.cluster.links == snapshot.cluster.links
    assert again.memory[0] == 1
    assert math.isnan(again.memory[1])
    assert again.memory[2].tolist() == [1.0, 2.0]
    assert again.jobs.options(0)[1].rate == 0.1
    assert again.cluster.node_cpus_free.tolist() == [8.0, 0.0]
    assert encode_snapshot(again) == encode_snapshot(snapshot)


def test_a_person_needs_only_a_cluster_and_jobs() -> None:
    snapshot = decode_snapshot(
        {"now": 600, "cluster": "2x4", "jobs": [{"id": "b", "arrival": 30}, {"id": "a", "gpus": 4, "devices": [0, 1, 2, 3]}]}
    )
    jobs = snapshot.jobs
    assert jobs.ids == ["a", "b"]
    assert jobs.running.tolist() == [True, False]
    assert jobs.held.tolist() == [4, 0]
    assert jobs.waiting.tolist() == [0.0, 570.0]
    assert jobs.remaining.tolist() == [3600.0, 3600.0]
    assert snapshot.cluster.free == 4
    assert snapshot.cluster.node_free.tolist() == [0, 4]
    assert snapshot.users == ("",)
    assert jobs.options(1)[0].gpus == 1


def test_work_already_done_is_told_by_service() -> None:
    snapshot = decode_snapshot(
        {"now": 600, "cluster": "1x4", "jobs": [{"id": "a", "gpus": 2, "service": 100, "estimate": 250, "devices": [0, 1]}]}
    )
    assert snapshot.jobs.attained.tolist() == [100.0]
    assert snapshot.jobs.attained_gpu.tolist() == [200.0]
    assert snapshot.jobs.remaining.tolist() == [150.0]
    assert snapshot.jobs.first_start.tolist() == [500.0]


def test_an_empty_cluster_and_no_jobs_are_a_snapshot_too() -> None:
    snapshot = decode_snapshot({"cluster": "1x1"})
    assert len(snapshot.jobs) == 0
    assert encode_snapshot(decode_snapshot(encode_snapshot(snapshot))) == encode_snapshot(snapshot)


def test_the_true_amount_of_work_never_leaves_the_simulator() -> None:
    seen: list[dict[str, Any]] = []

    peek = watched(Fifo, lambda snapshot: seen.append(encode_snapshot(snapshot)))
    simulate([{"job": "a", "arrival": 0.0, "gpus": 1, "duration": 1234.5}], "1x1", peek, estimates="none")
    assert "1234.5" not in json.dumps(seen)


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ({"kind": "plan", "cluster": "1x1"}, ["snapshot.kind", "'plan', not a snapshot"]),
        ({"version": 2, "cluster": "1x1"}, ["snapshot.version", "newer Gantline"]),
        ({"version": "one", "cluster": "1x1"}, ["snapshot.version", "'one'"]),
        ({"jobs": []}, ["'cluster' is missing", '"cluster": "2x4"']),
        ({"cluster": "two by four"}, ["is not a group of nodes"]),
        ({"cluster": {"nodes": [{"gpu": 4}]}}, ["snapshot.cluster.nodes[0]", "unknown key 'gpu'", "'gpus'"]),
        ({"cluster": "1x1", "job": []}, ["unknown key 'job'", "'jobs'"]),
        ({"cluster": "1x1", "jobs": {}}, ["snapshot.jobs", "not a list"]),
        ({"cluster": "1x1", "jobs": [{"gpus": 1}]}, ["snapshot.jobs[0]", "'id' is missing"]),
        ({"cluster": "1x1", "jobs": [{"id": 7}]}, ["snapshot.jobs[0].id", "not text"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "gpus": "one"}]}, ["snapshot.jobs[0].gpus", "'one'"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "gpus": 1.5}]}, ["snapshot.jobs[0].gpus", "1.5"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "estimate": True}]}, ["snapshot.jobs[0].estimate", "not a number"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "arrival": -1}]}, ["snapshot.jobs[0].arrival", "-1"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "devices": [3]}]}, ["snapshot.jobs[0].devices[0]", "device 3 of 1"]),
        ({"cluster": "1x2", "jobs": [{"id": "a", "devices": [0]}, {"id": "b", "devices": [0]}]}, ["jobs[1].devices[0]", "held by job 'a'"]),
        ({"cluster": "1x2", "jobs": [{"id": "a", "devices": [0, 1]}]}, ["snapshot.jobs[0]", "none of its options"]),
        ({"cluster": "1x1", "jobs": [{"id": "a"}, {"id": "a"}]}, ["snapshot.jobs[1].id", "two jobs"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "phase": "done"}]}, ["snapshot.jobs[0].phase", "no phase"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "phase": "completed"}]}, ["snapshot.jobs[0].phase", "no phase"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "options": [{"type": "k80", "gpus": 1}]}]}, ["options[0].type", "no type 'k80'"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "option": 3, "devices": [0]}]}, ["snapshot.jobs[0].option", "has 1 options"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "user": "ana"}], "users": ["bo"]}, ["snapshot.jobs[0].user", "not among the users"]),
        ({"cluster": "1x1", "down": ["node7"]}, ["snapshot.down", "no node 'node7'", "node0"]),
        ({"cluster": "1x1", "jobs": [{"id": "a", "row": 3}, {"id": "b", "row": 3}]}, ["rows do not rise"]),
        ([], ["snapshot", "a list, not an object"]),
    ],
)
def test_a_mistake_is_named_by_its_path(document: Any, parts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        decode_snapshot(document)
    for part in parts:
        assert part in str(caught.value)


def test_a_plan_of_every_field_survives_json() -> None:
    rows = [
        Assignment(0, option=1, gpus=2, type=0, devices=(3, 1), nodes=(0,), cpus=4.5, memory=8.0, within="rack", required=True, until=90.0),
        Assignment(1, group=7, mode=Mode.INTERLEAVE, fraction=0.25, memory_cap=12.0, offset=0.3, share=0.5, purpose="profile", limit=60.0),
        Assignment(
            2, parts=(Part("ps", 0, 1, 0, 2.0, 4.0), Part("worker", 1, 2, 1, nodes=(1, 2), devices=(5, 6))), batch=64, accumulation=2
        ),
    ]
    plan = Plan.assign(
        rows,
        reservations=(Reservation(10.0, math.inf, 4, job=1, nodes=(0, 1)),),
        refusals=(Refusal(2, "too late", {"deadline": 300.0}),),
        release=(1, 0),
        valid_until=math.inf,
        memory={"seen": [1, 2.5, None], "bytes": np.arange(3)},
    )
    again = decode_plan(through_text(encode_plan(plan)))
    assert again.assignments is not None
    for ours, theirs in zip(rows, again.assignments, strict=True):
        assert repr(ours) == repr(theirs)
    assert (again.reservations, again.refusals, again.release, again.valid_until) == (
        plan.reservations, plan.refusals, plan.release, plan.valid_until,
    )  # fmt: skip
    assert again.memory["bytes"].tolist() == [0, 1, 2]
    assert encode_plan(again) == encode_plan(plan)


def test_a_plan_keeps_columns_that_are_at_their_default() -> None:
    plan = Plan.assign(Assignments([0, 1], share=[1.0, 1.0]))
    again = decode_plan(encode_plan(plan))
    assert again.assignments is not None
    assert again.assignments.has("share")
    assert not again.assignments.has("gpus")


@given(
    key=st.lists(st.floats(allow_nan=False)),
    misfit=st.sampled_from(Misfit),
    preempt=st.booleans(),
    until=st.none() | st.floats(allow_nan=False),
)
def test_a_ranking_survives_json(key: list[float], misfit: Misfit, preempt: bool, until: float | None) -> None:
    plan = Plan.rank(key, misfit=misfit, preempt=preempt, valid_until=until)
    again = decode_plan(through_text(encode_plan(plan)))
    assert again.ranking is not None
    assert again.ranking.key.tolist() == key
    assert (again.ranking.misfit, again.ranking.preempt, again.valid_until) == (misfit, preempt, until)


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ({"rank": {}}, ["plan", "unknown key 'rank'", "'ranking'"]),
        ({"ranking": {"key": ["first"]}}, ["plan.ranking.key[0]", "not a number"]),
        ({"ranking": {"key": [], "misfit": "jump"}}, ["plan.ranking.misfit", "'jump'"]),
        ({"assignments": {"job": [0], "gpus": []}}, ["plan.assignments.gpus", "0 entries for 1 jobs"]),
        ({"assignments": {"job": [0], "mode": ["apart"]}}, ["plan.assignments.mode[0]", "'apart'"]),
    ],
)
def test_a_mistake_in_a_plan_is_named_by_its_path(document: Any, parts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        decode_plan(document)
    for part in parts:
        assert part in str(caught.value)


def test_a_cluster_given_by_its_short_form_has_its_nodes() -> None:
    by_hand = decode_snapshot({"cluster": {"spec": "2x4"}, "jobs": [{"id": "a", "gpus": 2, "devices": [4, 5]}]})
    assert by_hand.cluster.gpus == 8
    assert by_hand.jobs.devices(0) == (4, 5)
    with pytest.raises(UsageError, match="2y4"):
        decode_snapshot({"cluster": {"spec": "2y4"}})
