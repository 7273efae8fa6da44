"""Objects with the label ``gantline.io/queue`` on a real API server: held, admitted on the nodes of the plan, suspended again, ended."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.system.kubernetes import KubernetesCluster, missing, wait_for
from tests.system.kubernetes_objects import (
    Services,
    becomes,
    create,
    delete,
    fill,
    finish,
    job,
    nodes_of,
    notes,
    shown,
    template,
    uids_of,
    waits,
)

from gantline.core.inputs import Action
from gantline.live.runners.kubernetes.access import path_of

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def test_a_plain_job_waits_its_turn_runs_where_the_plan_says_and_ends(serve: Services, cluster: KubernetesCluster, tmp_path: Path) -> None:
    scheduler = serve()
    create(cluster, "jobs", "first", job(waits(tmp_path), pods=3), priority="7")
    first = becomes(scheduler, "first", "running")
    assert (first.queue, first.gpus, first.priority) == ("research", 3, 7)
    held = sorted(device.partition(":")[0] for device in first.devices)
    assert nodes_of(cluster, "first") == held == ["a", "a", "b"]
    assert notes(cluster, "jobs", "first")["gantline.io/job"] == first.id
    create(cluster, "jobs", "second", job("echo hello from $HOSTNAME", pods=2))
    second = becomes(scheduler, "second", "pending")
    assert shown(cluster, "jobs", "second")["spec"]["parallelism"] == 0  # Kubernetes 1.20 cannot suspend a Job
    wait_for(lambda: not nodes_of(cluster, "second"), "no pod of the one that waits")
    finish(tmp_path)
    becomes(scheduler, "first", "succeeded")
    assert becomes(scheduler, "second", "succeeded").exit_code == 0
    output = scheduler.runner.output(second.id, 1)
    assert output.read(0, output.size).decode().count("hello from") == 2
    output.close()


def test_a_job_that_fails_has_failed_with_its_exit_code(serve: Services, cluster: KubernetesCluster) -> None:
    scheduler = serve()
    create(cluster, "jobs", "bad", {**job("exit 7"), "backoffLimit": 0})
    bad = becomes(scheduler, "bad", "failed")
    assert bad.exit_code == 7


def test_one_that_is_deleted_by_hand_is_cancelled_and_its_devices_are_free(serve: Services, cluster: KubernetesCluster) -> None:
    scheduler = serve()
    create(cluster, "jobs", "long", job("sleep 1000", pods=4))
    becomes(scheduler, "long", "running")
    create(cluster, "jobs", "next", job("true", pods=4))
    becomes(scheduler, "next", "pending")
    delete(cluster, "jobs", "long")
    becomes(scheduler, "long", "cancelled")
    becomes(scheduler, "next", "succeeded")


def test_one_that_is_cancelled_here_stays_suspended(serve: Services, cluster: KubernetesCluster) -> None:
    scheduler = serve()
    create(cluster, "jobs", "long", job("sleep 1000", pods=2))
    scheduler.request([becomes(scheduler, "long", "running").id], Action.CANCEL)
    becomes(scheduler, "long", "cancelled")
    wait_for(lambda: not nodes_of(cluster, "long"), "removal of the pods")
    again = serve()
    assert shown(cluster, "jobs", "long")["spec"]["parallelism"] == 0
    assert [one.state for one in again.view().jobs.values()] == ["cancelled"]


def test_the_next_service_goes_on_with_what_was_admitted_and_what_waits(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path, name="runs")
    create(cluster, "jobs", "waits", job("true"))
    becomes(scheduler, "waits", "pending")
    wait_for(lambda: "gantline.io/job" in notes(cluster, "jobs", "waits"), "the number of the one that waits")
    pods = uids_of(cluster, "runs")
    again = serve()
    becomes(again, "runs", "running")
    assert uids_of(cluster, "runs") == pods
    finish(tmp_path)
    becomes(again, "waits", "succeeded")
    assert becomes(again, "runs", "succeeded").restarts == 0
    assert len(again.view().jobs) == 2


REFUSED = {
    "names another scheduler": (job("true", scheduler="another"), {}, "its pods ask for another scheduler"),
    "asks for nothing": (job("true", cpu=0), {}, "none of its pods requests a CPU"),
    "would run out of time": ({**job("true"), "activeDeadlineSeconds": 60}, {}, "activeDeadlineSeconds would go on while it waits"),
    "elastic the wrong way round": (job("true"), {"min-gpus": "3", "max-gpus": "2"}, "is elastic from 3 to 2"),
    "priority is no number": (job("true"), {"priority": "urgent"}, "priority is 'urgent', no whole number"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_run_is_refused_in_words_at_the_object(serve: Services, cluster: KubernetesCluster, case: str) -> None:
    spec, more, said = REFUSED[case]
    scheduler = serve()
    create(cluster, "jobs", "odd", spec, **more)
    wait_for(lambda: said in notes(cluster, "jobs", "odd").get("gantline.io/refused", ""), f"refusal; {notes(cluster, 'jobs', 'odd')}")
    assert not scheduler.view().jobs
    assert shown(cluster, "jobs", "odd")["spec"]["parallelism"] == 0


def test_one_that_is_preempted_is_held_and_admitted_again(serve: Services, cluster: KubernetesCluster, tmp_path: Path) -> None:
    scheduler = serve("srtf")
    create(cluster, "jobs", "long", job(waits(tmp_path), pods=4), resumes="true", estimate="2h")
    becomes(scheduler, "long", "running")
    assert nodes_of(cluster, "long") == ["a", "a", "b", "b"]
    create(cluster, "jobs", "short", job("true", pods=2), estimate="10s")
    becomes(scheduler, "short", "succeeded")
    becomes(scheduler, "long", "running")
    finish(tmp_path)
    assert becomes(scheduler, "long", "succeeded").restarts == 1


def test_one_that_is_started_by_hand_is_held_again(serve: Services, cluster: KubernetesCluster, tmp_path: Path) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path, name="big")
    create(cluster, "jobs", "small", job("true"))
    becomes(scheduler, "small", "pending")
    cluster.client.merge(path_of("jobs", "default", "small", "batch/v1"), {"spec": {"parallelism": 1}})
    wait_for(lambda: shown(cluster, "jobs", "small")["spec"]["parallelism"] == 0, "its parallelism to be set back")
    finish(tmp_path)
    becomes(scheduler, "small", "succeeded")


def test_a_pytorchjob_is_suspended_when_it_is_preempted_and_admitted_again(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve("srtf")
    replicas = {role: {"replicas": count, "template": template(waits(tmp_path), scheduler="")} for role, count in
                {"Master": 1, "Worker": 3}.items()}  # fmt: skip
    create(cluster, "pytorchjobs", "train", {"pytorchReplicaSpecs": replicas}, resumes="true", estimate="2h")
    low = becomes(scheduler, "train", "running")
    assert nodes_of(cluster, "train") == ["a", "a", "b", "b"]
    create(cluster, "jobs", "urgent", job(waits(tmp_path / "urgent"), pods=2), estimate="10s")
    becomes(scheduler, "urgent", "running")
    assert shown(cluster, "pytorchjobs", "train")["spec"]["runPolicy"]["suspend"] is True
    assert nodes_of(cluster, "train") == []
    finish(tmp_path / "urgent")
    becomes(scheduler, "urgent", "succeeded")
    becomes(scheduler, "train", "running")
    finish(tmp_path)
    assert becomes(scheduler, "train", "succeeded").restarts == low.restarts + 1


def test_an_elastic_mpijob_of_voda_has_the_workers_that_the_policy_gives(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve("voda.elastic_fifo")
    line = waits(tmp_path)
    launcher = template(line, cpu=0, scheduler="", MIN_NUM_PROC="1", MAX_NUM_PROC="3", NUM_PROC="2", JOB_PRIORITY="0")
    replicas = {"Launcher": {"replicas": 1, "template": launcher}, "Worker": {"replicas": 1, "template": template(line, scheduler="")}}
    create(cluster, "mpijobs", "elastic", {"mpiReplicaSpecs": replicas})
    first = becomes(scheduler, "elastic", "running")
    assert len(first.devices) == shown(cluster, "mpijobs", "elastic")["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 3
    assert (first.min_gpus, first.max_gpus) == (1, 3)
    finish(tmp_path)
    becomes(scheduler, "elastic", "succeeded")


def test_a_pytorchjob_that_is_unsuspended_by_hand_is_suspended_again(serve: Services, cluster: KubernetesCluster, tmp_path: Path) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path, name="big")
    worker = {"Worker": {"replicas": 1, "template": template("true", scheduler="")}}
    create(cluster, "pytorchjobs", "small", {"pytorchReplicaSpecs": worker})
    becomes(scheduler, "small", "pending")
    path = path_of("pytorchjobs", "default", "small", "kubeflow.org/v1")
    cluster.client.merge(path, {"spec": {"runPolicy": {"suspend": False}}})
    wait_for(lambda: shown(cluster, "pytorchjobs", "small")["spec"]["runPolicy"]["suspend"], "its suspension")
    finish(tmp_path)
    becomes(scheduler, "small", "succeeded")
