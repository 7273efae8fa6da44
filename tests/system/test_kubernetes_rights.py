"""A token with exactly the rights of the manifest serves; without any one of its rules it is refused by verb and resource."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.system.kubernetes import ROOT, KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_bench import KubernetesBench
from tests.system.kubernetes_objects import Services, becomes, create, delete, edit, job, notes, shown

from gantline.core.errors import RefusedError
from gantline.engine.executor import News, Order, Verb
from gantline.live.runners.kubernetes.access import Object, path_of
from gantline.live.runners.kubernetes.lease_and_rights import RIGHTS

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
GROUP = "rbac.authorization.k8s.io/v1"
ROLES: list[Object] = [
    one for one in yaml.safe_load_all((ROOT / "deploy/kubernetes/rbac.yaml").read_text()) if one["kind"].endswith("Role")
]
RULES = [(role["kind"], number) for role in ROLES for number in range(len(role["rules"]))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a"), node("b")])
        found.client.create(path_of("namespaces"), {"metadata": {"name": "gantline"}})
        for role in ROLES:
            wide = role["kind"] == "ClusterRole"
            binding = {
                "apiVersion": GROUP, "kind": f"{role['kind']}Binding", "metadata": {"name": "gantline"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role["kind"], "name": "gantline"},
                "subjects": [{"kind": "User", "name": "gantline", "apiGroup": "rbac.authorization.k8s.io"}],
            }  # fmt: skip
            found.client.create(path_of("clusterroles" if wide else "roles", "" if wide else "default", group=GROUP), role)
            found.client.create(path_of("clusterrolebindings" if wide else "rolebindings", "" if wide else "default", group=GROUP), binding)
        yield found
        empty(found)


def grant(cluster: KubernetesCluster, role: Object) -> None:
    space = "" if role["kind"] == "ClusterRole" else "default"
    cluster.client.merge(path_of(f"{role['kind'].lower()}s", space, "gantline", GROUP), {"rules": role["rules"]})


def test_what_the_manifest_grants_is_enough_for_a_gang_over_two_nodes(cluster: KubernetesCluster, tmp_path: Path) -> None:
    bench = KubernetesBench(cluster, tmp_path, kubeconfig=str(cluster.kubeconfig_of("gantline")))
    try:
        bench.send(Order(Verb.START, 0, 1, (0, 4)))
        wait_for(lambda: [one for one, _ in bench.reports() if one.news is News.STARTED], "start")
        assert bench.runner.output("job0", 1).size > 0
        bench.send(Order(Verb.STOP, 0, 1))
        wait_for(lambda: [one for one, _ in bench.reports() if one.news is News.STOPPED], "stop")
        wait_for(lambda: not cluster.pods(), "removal of the pods")
        services = path_of("services", "default")
        wait_for(lambda: len(cluster.client.get(services)["items"]) == 1, "removal of the meeting point")  # one is the cluster's own
    finally:
        bench.close()


def test_what_the_manifest_grants_is_enough_to_admit_an_object_and_to_let_it_go(cluster: KubernetesCluster, tmp_path: Path) -> None:
    services = Services(cluster, tmp_path, kubeconfig=str(cluster.kubeconfig_of("gantline")))
    scheduler = services()
    try:
        create(cluster, "jobs", "plain", job("true", pods=2))
        becomes(scheduler, "plain", "starting")  # no controller makes its pods here
        wait_for(lambda: notes(cluster, "jobs", "plain").get("gantline.io/given") == '{"": 2}', "its admission")
        edit(cluster, "jobs", "plain", queue=None)
        becomes(scheduler, "plain", "cancelled")
        wait_for(lambda: not notes(cluster, "jobs", "plain"), "its release")
        assert shown(cluster, "jobs", "plain")["spec"]["parallelism"] == 2
    finally:
        services.stop()
        delete(cluster, "jobs", "plain")
        empty(cluster)


@pytest.mark.parametrize(("kind", "number"), RULES)
def test_without_a_rule_the_service_does_not_start(cluster: KubernetesCluster, tmp_path: Path, kind: str, number: int) -> None:
    role = next(one for one in ROLES if one["kind"] == kind)
    taken = role["rules"][number]
    grant(cluster, {**role, "rules": [rule for place, rule in enumerate(role["rules"]) if place != number]})
    try:
        with pytest.raises(RefusedError) as refused:
            wait_for(lambda: KubernetesBench(cluster, tmp_path, kubeconfig=str(cluster.kubeconfig_of("gantline"))).close(), "refusal", 20)
        said = str(refused.value)
        assert all(f"{verb} {taken['resources'][0]}" in said for verb in taken["verbs"])
    finally:
        grant(cluster, role)


def test_the_manifest_grants_what_is_asked_for_and_nothing_else() -> None:
    granted = {
        (verb, resource, group, role["kind"] == "ClusterRole")
        for role in ROLES for rule in role["rules"]
        for verb in rule["verbs"] for resource in rule["resources"] for group in rule["apiGroups"]
    }  # fmt: skip
    assert granted == {tuple(right) for right in RIGHTS}


# The manifests of `deploy/kubernetes`, put together by kustomize and checked by a real API server, which stores nothing of them.

DEPLOY = ROOT / "deploy" / "kubernetes"


def dry_run(cluster: KubernetesCluster, folder: Path) -> subprocess.CompletedProcess[str]:
    """Apply the manifests for the look of it, also over the bindings that this cluster was given by hand."""
    kubectl = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "apply", "--server-side", "--force-conflicts", "--dry-run=server"]
    command = [*kubectl, "-k", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_server_accepts_every_object(cluster: KubernetesCluster) -> None:
    done = dry_run(cluster, DEPLOY)
    assert done.returncode == 0, done.stderr
    kinds = sorted(line.partition("/")[0].partition(".")[0] for line in done.stdout.splitlines())
    expected = [
        "clusterrole",
        "clusterrolebinding",
        "deployment",
        "persistentvolumeclaim",
        "role",
        "rolebinding",
        "service",
        "serviceaccount",
    ]
    assert kinds == expected
    assert not cluster.client.get(path_of("deployments", "gantline", group="apps/v1"))["items"]


def test_the_server_says_what_is_wrong_with_one(cluster: KubernetesCluster, tmp_path: Path) -> None:
    for file in DEPLOY.glob("*.yaml"):
        (tmp_path / file.name).write_text(file.read_text().replace("containerPort: 8000,", "containerPort: 800000,"))
    done = dry_run(cluster, tmp_path)
    assert done.returncode != 0
    assert "containerPort" in done.stderr
