"""The manifests of `deploy/kubernetes`, put together by kustomize and checked by a real API server, which stores nothing of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.kubernetes import ROOT, KubernetesCluster, kubernetes_cluster, missing

from gantline.live.runners.kubernetes.access import path_of

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
DEPLOY = ROOT / "deploy" / "kubernetes"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.client.create(path_of("namespaces"), {"metadata": {"name": "gantline"}})
        yield found


def dry_run(cluster: KubernetesCluster, folder: Path) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "apply", "--server-side", "--dry-run=server", "-k", str(folder)]
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
