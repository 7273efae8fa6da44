"""Changes that hold, admit and let go objects of others, on servers that can suspend a Job and on those that cannot."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from gantline.core.errors import RefusedError
from gantline.live.runners.kubernetes.workload_lifecycle import asks_of, spec_of_workload
from gantline.live.runners.kubernetes.workloads import KINDS, Workload

JOB, PYTORCH = KINDS[0], KINDS[1]
ELASTIC = {"gantline.io/min-gpus": "1", "gantline.io/max-gpus": "4"}


def template(scheduler: str = "") -> dict[str, Any]:
    named = {"schedulerName": scheduler} if scheduler else {}
    return {"spec": {**named, "containers": [{"name": "work", "resources": {"requests": {"cpu": "1"}}}]}}


def head() -> dict[str, Any]:
    named = {"name": "train", "namespace": "default", "uid": "u", "resourceVersion": "1"}
    return {**named, "labels": {"gantline.io/queue": "q"}, "annotations": dict(ELASTIC)}


def plain(by_parallelism: bool, **spec: Any) -> Workload:
    value = {"metadata": head(), "spec": {"parallelism": 2, "completions": 2, "template": template("gantline"), **spec}}
    return Workload(JOB, value, by_parallelism)


def pytorch(scheduler: str = "", **policy: Any) -> Workload:
    roles = {"Master": {"replicas": 1, "template": template(scheduler)}, "Worker": {"replicas": 2, "template": template(scheduler)}}
    return Workload(PYTORCH, {"metadata": head(), "spec": {"pytorchReplicaSpecs": roles, **({"runPolicy": policy} if policy else {})}})


WORKLOADS = {
    "a Job of a server that can suspend it": lambda: plain(False, suspend=False),
    "a Job that its owner made suspended": lambda: plain(False, suspend=True),
    "a Job of a server that cannot": lambda: plain(True),
    "a PyTorchJob": pytorch,
    "a PyTorchJob that its owner made suspended": lambda: pytorch(suspend=True),
    "a PyTorchJob that names this scheduler": lambda: pytorch("gantline"),
}

SPOILT: list[Any] = [
    {},
    {"parallelism": "two"},
    {"parallelism": -1, "suspend": False},
    {"parallelism": True},
    {"pytorchReplicaSpecs": "none"},
    {"runPolicy": {}, "pytorchReplicaSpecs": {"Worker": 3}},
    {"runPolicy": {}, "pytorchReplicaSpecs": {"Worker": {"replicas": "two"}}},
    {"runPolicy": {}, "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": {"spec": {"schedulerName": 1}}}}},
    {"runPolicy": [], "pytorchReplicaSpecs": {}},
]  # what a hand may make of the annotation gantline.io/made


def merged(value: Any, change: Any) -> Any:
    """As a server does it with a merge patch (RFC 7396)."""
    if not isinstance(change, dict):
        return change
    found = dict(value) if isinstance(value, dict) else {}
    for key, one in change.items():
        if one is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), one)
    return found


def after(workload: Workload, change: dict[str, Any]) -> Workload:
    return workload.renewed(merged(workload.value, change))


def submitted(workload: Workload) -> Workload:
    """Held, with what it asks for written at it."""
    return after(workload, workload.hold(asked=json.dumps(asks_of(workload, slots=True))))


@pytest.fixture(params=WORKLOADS)
def workload(request: pytest.FixtureRequest) -> Workload:
    found: Workload = WORKLOADS[request.param]()
    return found


def test_held_it_is_suspended_and_asks_for_the_same(workload: Workload) -> None:
    held = submitted(workload)
    assert held.is_suspended
    assert held.names_us
    assert asks_of(held, slots=True) == asks_of(workload, slots=True)


def test_admitted_with_more_devices_and_held_again_it_still_asks_for_the_same(workload: Workload) -> None:
    held = submitted(workload)
    asked = sum(held.wanted.values())
    runs = after(held, held.admit(held.sizes(asked + 1), epoch=3))
    assert sum(runs.counts.values()) == asked + 1
    assert runs.is_admitted(3)
    assert not runs.is_admitted(2)
    for one in (runs, after(runs, runs.hold())):
        assert asks_of(one, slots=True) == asks_of(workload, slots=True)


def test_let_go_it_is_as_its_owner_made_it(workload: Workload) -> None:
    before = copy.deepcopy(workload.value)
    held = submitted(workload)
    runs = after(held, held.admit(held.sizes(1 + sum(held.wanted.values())), epoch=1))
    for one in (held, runs, after(runs, runs.hold())):
        left = after(one, one.release())
        spec = {key: value for key, value in left.value["spec"].items() if value != {}}
        assert (left.value["metadata"], spec) == (before["metadata"], before["spec"])
    assert workload.release() == {}


def test_a_number_that_its_owner_writes_while_it_runs_is_what_it_asks_for(workload: Workload) -> None:
    held = submitted(workload)
    runs = after(held, held.admit(held.sizes(sum(held.wanted.values())), epoch=1))
    more = {"parallelism": 4} if workload.kind is JOB else {"pytorchReplicaSpecs": {"Worker": {"replicas": 4}}}
    edited = after(runs, {"spec": more})
    assert edited.counts != edited.given
    assert 4 in asks_of(edited, slots=True)["pods"].values()
    back = after(edited, edited.admit(edited.given, epoch=1))
    assert back.counts == runs.counts  # the gang has the pods that it was given
    assert asks_of(back, slots=True) == asks_of(edited, slots=True)  # and what its owner wants is kept


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", '{"Worker": "two"}', '{"Worker": 2}'])
def test_annotations_that_were_edited_by_hand_say_nothing(workload: Workload, text: str) -> None:
    unreadable = after(workload, {"metadata": {"annotations": {f"gantline.io/{name}": text for name in ("given", "asked", "made")}}})
    assert (unreadable.given if workload.kind is JOB else {}, unreadable.asked) == ({}, {})
    assert asks_of(unreadable, slots=True) == asks_of(workload, slots=True)


@pytest.mark.parametrize("text", ["", "no JSON", "[1]", *map(json.dumps, SPOILT)])
def test_one_whose_noted_fields_were_spoilt_is_answered_and_can_be_held_admitted_and_let_go(workload: Workload, text: str) -> None:
    held = submitted(workload)
    runs = after(held, held.admit(held.sizes(1 + sum(held.wanted.values())), epoch=1))
    for one in (held, runs):
        unreadable = after(one, {"metadata": {"annotations": {"gantline.io/made": text}}})
        assert "gantline.io/made cannot be read" in unreadable.unreadable
        assert asks_of(unreadable, slots=True) == asks_of(workload, slots=True)  # as it was submitted
        for change in (unreadable.hold(), unreadable.admit(unreadable.sizes(2), epoch=2)):
            mended = after(unreadable, change)
            assert mended.unreadable == ""
            assert asks_of(mended, slots=True) == asks_of(workload, slots=True)
        left = after(unreadable, unreadable.release())
        assert not left.is_suspended
        assert left.counts == workload.counts
        assert not left.kind.replicas or not left.names_us


def test_changes_of_what_its_owner_writes_too_are_of_one_version_only(workload: Workload) -> None:
    held = submitted(workload)
    for change in (workload.hold(), held.admit(held.sizes(2), epoch=1), held.release()):
        assert change["metadata"]["resourceVersion"] == "1"
    assert "resourceVersion" not in workload.mark(refused="why")["metadata"]  # nothing but annotations of ours
    assert "spec" not in workload.mark(refused="why")


@pytest.mark.parametrize("written", ["two", -1, True, 1.5])
def test_a_number_of_pods_that_is_none_is_named_and_nothing_else_is_done(written: Any) -> None:
    odd = after(pytorch("gantline"), {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": written}}}})
    assert asks_of(odd, slots=True)["pods"] == {"Master": 1, "Worker": 0}
    with pytest.raises(RefusedError, match=r"PyTorchJob train: pytorchReplicaSpecs.Worker.replicas is .*, no whole number \(correct it"):
        spec_of_workload(odd, [], slots=True)


def test_a_role_that_is_none_is_named() -> None:
    odd = pytorch("gantline")
    odd.value["spec"]["pytorchReplicaSpecs"]["Worker"] = 3
    with pytest.raises(RefusedError, match=r"pytorchReplicaSpecs.Worker is 3, without a template"):
        spec_of_workload(odd, [], slots=True)


def test_while_it_runs_a_number_that_cannot_be_read_counts_as_the_one_it_was_given() -> None:
    runs = after(submitted(pytorch()), submitted(pytorch()).admit({"Master": 1, "Worker": 2}, 1))
    odd = after(runs, {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": "two"}}}})
    assert (odd.counts, odd.wanted) == (runs.counts, runs.wanted)
