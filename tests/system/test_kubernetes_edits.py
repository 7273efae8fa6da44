"""What owners do to objects that were taken in: another size, queue or priority, no label; while they wait, run, or no service is there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.system.kubernetes import KubernetesCluster, missing, wait_for
from tests.system.kubernetes_objects import (
    Services,
    becomes,
    create,
    delete,
    edit,
    fill,
    finish,
    go,
    job,
    known,
    named,
    nodes_of,
    notes,
    shown,
    template,
    waits,
)

from gantline.core.inputs import Action
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.view import JobView

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


def workers(count: int, line: str = "true") -> dict[str, Any]:
    return {"pytorchReplicaSpecs": {"Worker": {"replicas": count, "template": template(line, scheduler="")}}}


def voda(least: int, most: int, line: str) -> dict[str, Any]:
    launcher = template(line, 0, "", MIN_NUM_PROC=str(least), MAX_NUM_PROC=str(most), NUM_PROC=str(least))
    return {
        "mpiReplicaSpecs": {"Launcher": {"replicas": 1, "template": launcher}, "Worker": {"replicas": 1, "template": template(line, 1, "")}}
    }


def submitted(cluster: KubernetesCluster, scheduler: Scheduler, plural: str, name: str) -> JobView:
    """Wait until an object says which job it is, and that job waits."""
    wait_for(lambda: "gantline.io/job" in notes(cluster, plural, name), f"number of {name}")
    return becomes(scheduler, name, "pending")


def says(cluster: KubernetesCluster, plural: str, name: str, words: str) -> None:
    wait_for(lambda: words in notes(cluster, plural, name).get("gantline.io/refused", ""), f"{words}: {notes(cluster, plural, name)}")


def says_nothing(cluster: KubernetesCluster, plural: str, name: str) -> None:
    wait_for(lambda: "gantline.io/refused" not in notes(cluster, plural, name), "removal of the refusal")


def test_a_job_that_waits_is_edited_to_a_size_that_fits_and_runs(serve: Services, cluster: KubernetesCluster, tmp_path: Path) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path, pods=3)
    create(cluster, "jobs", "second", job(waits(tmp_path), pods=2))
    number = submitted(cluster, scheduler, "jobs", "second").id
    edit(cluster, "jobs", "second", spec={"parallelism": 1})
    second = becomes(scheduler, "second", "running")
    assert (second.id, second.gpus) == (number, 1)  # resized: it keeps its number and its place in the queue
    assert shown(cluster, "jobs", "second")["spec"]["parallelism"] == 1
    finish(tmp_path)
    becomes(scheduler, "second", "succeeded")


def test_a_pytorchjob_that_waits_is_moved_to_another_queue_with_another_priority(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path)
    create(cluster, "pytorchjobs", "train", workers(2))
    old = submitted(cluster, scheduler, "pytorchjobs", "train").id
    edit(cluster, "pytorchjobs", "train", queue="urgent", notes={"priority": "9"})
    new = go(scheduler, "train", "cancelled", "pending")[1]
    assert (new.queue, new.priority, new.gpus) == ("urgent", 9.0, 2)
    wait_for(lambda: notes(cluster, "pytorchjobs", "train").get("gantline.io/job") == new.id, f"number {new.id} instead of {old}")
    finish(tmp_path)
    go(scheduler, "train", "cancelled", "succeeded")


def test_new_bounds_of_an_elastic_mpijob_act_while_it_runs(serve: Services, cluster: KubernetesCluster, tmp_path: Path) -> None:
    scheduler, line = serve("voda.elastic_fifo"), waits(tmp_path)
    create(cluster, "mpijobs", "elastic", voda(1, 4, line))
    wait_for(lambda: len(becomes(scheduler, "elastic", "running").devices) == 4, "all devices")
    edit(cluster, "mpijobs", "elastic", spec=voda(1, 2, line))
    wait_for(lambda: len(becomes(scheduler, "elastic", "running").devices) == 2, "as many as it may have now")
    (one,) = named(scheduler, "elastic")
    assert (one.min_gpus, one.max_gpus) == (1, 2)
    wait_for(lambda: shown(cluster, "mpijobs", "elastic")["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2, "two workers")
    finish(tmp_path)
    becomes(scheduler, "elastic", "succeeded")


def test_what_a_job_cannot_become_while_it_runs_is_said_and_acts_when_it_is_suspended(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    create(cluster, "pytorchjobs", "train", workers(2, waits(tmp_path)))
    first = becomes(scheduler, "train", "running")
    edit(cluster, "pytorchjobs", "train", notes={"priority": "9"})
    says(cluster, "pytorchjobs", "train", "it runs as it was submitted; priority")
    edit(cluster, "pytorchjobs", "train", notes={"priority": None})
    says_nothing(cluster, "pytorchjobs", "train")
    edit(cluster, "pytorchjobs", "train", queue="other")
    says(cluster, "pytorchjobs", "train", "queue: as it is now when it is next suspended")
    assert becomes(scheduler, "train", "running").epoch == first.epoch  # none of this has stopped it
    scheduler.request([first.id], Action.REQUEUE)
    assert go(scheduler, "train", "cancelled", "running")[1].queue == "other"
    assert "gantline.io/refused" not in notes(cluster, "pytorchjobs", "train")
    finish(tmp_path)
    go(scheduler, "train", "cancelled", "succeeded")


def test_a_size_that_the_cluster_does_not_have_is_refused_at_the_object_and_the_job_stays(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path)
    create(cluster, "pytorchjobs", "train", workers(2))
    number = submitted(cluster, scheduler, "pytorchjobs", "train").id
    edit(cluster, "pytorchjobs", "train", spec=workers(99))
    says(cluster, "pytorchjobs", "train", "ask for less")
    one = becomes(scheduler, "train", "pending")
    assert (one.id, one.gpus) == (number, 2)
    edit(cluster, "pytorchjobs", "train", spec=workers(3))
    wait_for(lambda: (found := known(scheduler, "train")) is not None and found.gpus == 3, "three devices")
    says_nothing(cluster, "pytorchjobs", "train")
    finish(tmp_path)
    becomes(scheduler, "train", "succeeded")


def test_one_that_was_cancelled_here_is_submitted_anew_when_its_size_is_edited(serve: Services, cluster: KubernetesCluster) -> None:
    scheduler = serve()
    create(cluster, "jobs", "long", job("sleep 1000", pods=2))
    scheduler.request([becomes(scheduler, "long", "running").id], Action.CANCEL)
    becomes(scheduler, "long", "cancelled")
    wait_for(lambda: shown(cluster, "jobs", "long")["spec"]["parallelism"] == 0, "its suspension")
    edit(cluster, "jobs", "long", spec={"parallelism": 3})
    assert go(scheduler, "long", "cancelled", "running")[1].gpus == 3


def made(value: dict[str, Any]) -> tuple[Any, ...]:
    """What its owner wrote of an object, and marks of ours."""
    ours = [key for key in value["metadata"].get("annotations") or {} if key.startswith("gantline.io/")]
    spec = value["spec"]
    roles = {
        name: (one["replicas"], one["template"]["spec"].get("schedulerName"))
        for name, one in (spec.get("pytorchReplicaSpecs") or {}).items()
    }
    return spec.get("parallelism"), (spec.get("runPolicy") or {}).get("suspend"), roles, ours


def left_alone(cluster: KubernetesCluster, name: str, count: int) -> None:
    """A PyTorchJob is as its owner made it."""
    wait_for(lambda: made(shown(cluster, "pytorchjobs", name)) == (None, None, {"Worker": (count, None)}, []), f"{name} as it was")


@pytest.mark.parametrize("is_served", [True, False], ids=["while it is served", "while no service is there"])
def test_without_its_label_one_that_waits_is_left_as_its_owner_made_it(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path, is_served: bool
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path)
    create(cluster, "jobs", "plain", job("true", pods=2))
    create(cluster, "pytorchjobs", "train", workers(3))
    submitted(cluster, scheduler, "jobs", "plain")
    submitted(cluster, scheduler, "pytorchjobs", "train")
    if not is_served:
        serve.stop()
    edit(cluster, "jobs", "plain", queue=None)
    edit(cluster, "pytorchjobs", "train", queue=None)
    scheduler = scheduler if is_served else serve()
    becomes(scheduler, "plain", "cancelled")
    becomes(scheduler, "train", "cancelled")
    wait_for(lambda: made(shown(cluster, "jobs", "plain")) == (2, None, {}, []), "the Job as it was")
    left_alone(cluster, "train", 3)
    finish(tmp_path)
    becomes(scheduler, "first", "succeeded")


def test_without_its_label_one_that_runs_gives_its_devices_back_and_with_it_is_taken_in_anew(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    create(cluster, "pytorchjobs", "train", workers(4, waits(tmp_path)))
    becomes(scheduler, "train", "running")
    create(cluster, "jobs", "next", job("true", pods=4))
    submitted(cluster, scheduler, "jobs", "next")
    edit(cluster, "pytorchjobs", "train", queue=None)
    becomes(scheduler, "train", "cancelled")
    left_alone(cluster, "train", 4)
    becomes(scheduler, "next", "succeeded")
    assert set(nodes_of(cluster, "train")) <= {""}  # its controller makes pods for another scheduler, which there is none of here
    edit(cluster, "pytorchjobs", "train", queue="research")
    go(scheduler, "train", "cancelled", "running")
    finish(tmp_path)
    go(scheduler, "train", "cancelled", "succeeded")


def test_what_was_edited_or_deleted_while_no_service_was_there_is_seen_by_the_next(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path)
    for name in ("smaller", "deleted"):
        create(cluster, "jobs", name, job("true", pods=2))
        submitted(cluster, scheduler, "jobs", name)
    serve.stop()
    edit(cluster, "jobs", "smaller", spec={"parallelism": 1})
    delete(cluster, "jobs", "deleted")
    scheduler = serve()
    becomes(scheduler, "deleted", "cancelled")
    wait_for(lambda: (found := known(scheduler, "smaller")) is not None and found.gpus == 1, "its new size")
    finish(tmp_path)
    becomes(scheduler, "smaller", "succeeded")
    becomes(scheduler, "first", "succeeded")


# --- in the instant in which the service changes the object -------------------------------------------------------------
Change = dict[str, Any]


@pytest.fixture
def just_before(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Change], bool], Callable[[], None]], list[Change]]:
    """Does something once, after a change was decided and before the API server receives it; what is returned has that change then."""
    merge = ApiClient.merge

    def arrange(is_meant: Callable[[Change], bool], act: Callable[[], None]) -> list[Change]:
        met: list[Change] = []

        def late(client: ApiClient, path: str, change: Change) -> Change:
            if not met and is_meant(change):
                met.append(change)
                act()
            return merge(client, path, change)

        monkeypatch.setattr(ApiClient, "merge", late)
        return met

    return arrange


def of_size(plural: str, count: int, line: str) -> Change:
    return job(line, pods=count) if plural == "jobs" else workers(count, line)


def size(count: int) -> dict[str, Change]:
    """The edit that gives an object so many pods."""
    return {"jobs": {"parallelism": count}, "pytorchjobs": {"pytorchReplicaSpecs": {"Worker": {"replicas": count}}}}


def suspends(change: Change) -> bool:
    spec = change.get("spec") or {}
    return spec.get("parallelism") == 0 or (spec.get("runPolicy") or {}).get("suspend") is True


def admits(change: Change) -> bool:
    return "gantline.io/epoch" in (change["metadata"].get("annotations") or {}) and bool(change.get("spec")) and not suspends(change)


@pytest.mark.parametrize("plural", ["jobs", "pytorchjobs"])
@pytest.mark.parametrize("is_meant", [suspends, admits])
def test_an_edit_in_the_instant_in_which_it_is_suspended_or_admitted_is_kept_and_acts(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path, just_before: Any, plural: str, is_meant: Callable[[Change], bool]
) -> None:
    scheduler = serve()
    met = just_before(is_meant, lambda: edit(cluster, plural, "train", spec=size(2)[plural]))
    create(cluster, plural, "train", of_size(plural, 3, waits(tmp_path)))
    wait_for(lambda: (found := known(scheduler, "train")) is not None and found.gpus == 2, "the size that its owner wrote")
    wait_for(lambda: len(becomes(scheduler, "train", "running").devices) == 2, "as many devices")
    assert met

    def pods() -> int:
        spec = shown(cluster, plural, "train")["spec"]
        return int(spec["parallelism"] if plural == "jobs" else spec["pytorchReplicaSpecs"]["Worker"]["replicas"])

    wait_for(lambda: pods() == 2, "as many pods")
    finish(tmp_path)
    go(scheduler, "train", "succeeded")


def test_an_edit_in_the_instant_in_which_it_is_let_go_is_kept(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path, just_before: Any
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path)
    create(cluster, "pytorchjobs", "train", workers(3))
    submitted(cluster, scheduler, "pytorchjobs", "train")

    def lets_go(change: Change) -> bool:
        return (change["metadata"].get("annotations") or {}).get("gantline.io/home", "") is None

    met = just_before(lets_go, lambda: edit(cluster, "pytorchjobs", "train", spec=size(2)["pytorchjobs"]))
    edit(cluster, "pytorchjobs", "train", queue=None)
    left_alone(cluster, "train", 2)
    assert met
    finish(tmp_path)


def test_an_annotation_of_ours_that_was_spoilt_by_hand_is_answered_and_keeps_nothing_from_running_or_leaving(
    serve: Services, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    scheduler = serve()
    fill(cluster, scheduler, tmp_path)
    for plural, name in (("jobs", "plain"), ("pytorchjobs", "train"), ("pytorchjobs", "left")):
        create(cluster, plural, name, of_size(plural, 2, "true"))
        submitted(cluster, scheduler, plural, name)
        edit(cluster, plural, name, notes={"made": '{"parallelism": "two", "pytorchReplicaSpecs": {"Worker": 2}}'})
        says(cluster, plural, name, "gantline.io/made cannot be read")
    edit(cluster, "pytorchjobs", "left", queue=None)
    becomes(scheduler, "left", "cancelled")
    left_alone(cluster, "left", 2)
    finish(tmp_path)
    for plural, name in (("jobs", "plain"), ("pytorchjobs", "train")):
        becomes(scheduler, name, "succeeded")
        says_nothing(cluster, plural, name)
