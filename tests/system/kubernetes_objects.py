"""Objects with the label ``gantline.io/queue`` in tests: services and controllers that take care of them, and what users do to them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.system.kubernetes import KubernetesCluster, empty, unless_gone, wait_for
from tests.system.kubernetes_bench import context

from gantline.live.runners.kubernetes.access import path_of
from gantline.live.runners.kubernetes.runner import KubernetesRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.view import JobView
from gantline.live.store.records import MemoryStore

GROUPS = {"jobs": "batch/v1", "pytorchjobs": "kubeflow.org/v1", "mpijobs": "kubeflow.org/v1"}
Serve = Callable[..., Scheduler]


class Services:
    """One after another, with one home and one store."""

    def __init__(self, cluster: KubernetesCluster, home: Path, **options: str) -> None:
        self.cluster, self.home, self.store, self.options = cluster, home, MemoryStore(), options
        self.now: Scheduler | None = None

    def __call__(self, policy: str = "fifo", **more: Any) -> Scheduler:
        self.stop()
        self.now = Scheduler(self.store, KubernetesRunner.open(context(self.cluster, self.home, **self.options)), policy, **more)
        self.now.start()
        return self.now

    def stop(self) -> None:
        if self.now is not None:
            self.now.stop()
            self.now = None

    def clear(self) -> None:
        for plural, group in GROUPS.items():
            for one in self.cluster.client.get(path_of(plural, "default", group=group))["items"]:
                delete(self.cluster, plural, one["metadata"]["name"])
        self.stop()
        empty(self.cluster)


def template(line: str, cpu: int = 1, scheduler: str = "gantline", **env: str) -> dict[str, Any]:
    container = {"name": "work", "image": "any", "command": ["/bin/sh", "-c", line], "resources": {"requests": {"cpu": str(cpu)}}}
    container |= {"env": [{"name": name, "value": value} for name, value in env.items()]} if env else {}
    named = {"schedulerName": scheduler} if scheduler else {}
    return {"spec": {**named, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]}}


def create(cluster: KubernetesCluster, plural: str, name: str, spec: dict[str, Any], queue: str = "research", **notes: str) -> None:
    head = {
        "name": name,
        "labels": {"gantline.io/queue": queue},
        "annotations": {f"gantline.io/{key}": text for key, text in notes.items()},
    }
    kind = {"jobs": "Job", "pytorchjobs": "PyTorchJob", "mpijobs": "MPIJob"}[plural]
    value = {"apiVersion": GROUPS[plural], "kind": kind, "metadata": head, "spec": spec}
    cluster.client.create(path_of(plural, "default", group=GROUPS[plural]), value)


def job(line: str, pods: int = 1, **more: Any) -> dict[str, Any]:
    return {"parallelism": pods, "completions": pods, "template": template(line, **more)}


def delete(cluster: KubernetesCluster, plural: str, name: str) -> None:
    """As a user does; there is no garbage collector here that would take the finalizers of a Job away."""
    path = path_of(plural, "default", name, GROUPS[plural])
    cluster.client.delete(path)
    unless_gone(partial(cluster.client.merge, path, {"metadata": {"finalizers": None}}))


def shown(cluster: KubernetesCluster, plural: str, name: str) -> dict[str, Any]:
    return cluster.client.get(path_of(plural, "default", name, GROUPS[plural]))


def notes(cluster: KubernetesCluster, plural: str, name: str) -> dict[str, str]:
    return shown(cluster, plural, name)["metadata"].get("annotations") or {}


def known(scheduler: Scheduler, name: str) -> JobView | None:
    return next(iter(named(scheduler, name)), None)


def becomes(scheduler: Scheduler, name: str, state: str) -> JobView:
    def found() -> JobView | None:
        one = known(scheduler, name)
        return one if one is not None and one.state == state else None

    try:
        return wait_for(found, state)
    except AssertionError:
        raise AssertionError(f"{name} does not become {state}: {list(scheduler.view().jobs.values())}") from None


def nodes_of(cluster: KubernetesCluster, name: str) -> list[str]:
    pods = [pod for pod in cluster.pods() if pod["metadata"]["name"].startswith(f"{name}-")]
    return sorted(pod["spec"].get("nodeName", "") for pod in pods if not pod["metadata"].get("deletionTimestamp"))


def uids_of(cluster: KubernetesCluster, name: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in cluster.pods() if pod["metadata"]["name"].startswith(f"{name}-")}


def finish(folder: Path, code: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "draft").write_text(str(code))
    (folder / "draft").rename(folder / "end")


def edit(cluster: KubernetesCluster, plural: str, name: str, **change: Any) -> None:
    """As ``kubectl edit`` does; `queue` and `notes` are its label and annotations of ours, `spec` its specification."""
    labels = {"labels": {"gantline.io/queue": change["queue"]}} if "queue" in change else {}
    marks = {"annotations": {f"gantline.io/{key}": text for key, text in (change.get("notes") or {}).items()}}
    value = {"metadata": {**labels, **marks}, "spec": change.get("spec") or {}}
    cluster.client.merge(path_of(plural, "default", name, GROUPS[plural]), value)


def waits(folder: Path) -> str:
    """A line that ends when `finish` says so."""
    return f"while [ ! -e {folder}/end ]; do sleep 0.05; done; exit $(cat {folder}/end)"


def fill(cluster: KubernetesCluster, scheduler: Scheduler, folder: Path, pods: int = 4, name: str = "first") -> None:
    """Keep so many devices busy until `finish`."""
    create(cluster, "jobs", name, job(waits(folder), pods=pods))
    becomes(scheduler, name, "running")


def named(scheduler: Scheduler, name: str) -> list[JobView]:
    return [one for one in scheduler.view().jobs.values() if one.name == name]


def go(scheduler: Scheduler, name: str, *states: str) -> list[JobView]:
    """Wait until the jobs of a name are in these states."""
    wait_for(lambda: [one.state for one in named(scheduler, name)] == [*states], f"{name}: {states}")
    return named(scheduler, name)
