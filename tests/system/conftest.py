"""A browser for the tests of this folder, started once; services, visitors and clusters, one for each file that asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.live.service.asking import cancel_all
from tests.live.service.conftest import Running, serving
from tests.system.chromium import Chromium
from tests.system.controllers import Controllers
from tests.system.kubernetes import KubernetesCluster, kubernetes_cluster, node
from tests.system.kubernetes_objects import Services
from tests.system.visitor import Visitor


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    chromium = Chromium(tmp_path_factory.mktemp("chromium"))
    yield chromium
    chromium.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = serving(tmp_path_factory.mktemp("home") / "gantline", devices="cpu:4", run_as="service")
    yield running
    if running.thread.is_alive():
        cancel_all(running.client())
    running.stop()


@pytest.fixture
def visitor(browser: Chromium, service: Running) -> Iterator[Visitor]:
    """The owner of the service, logged in; the browser may complain about nothing, the content policy included."""
    browser.become(1200)
    found = Visitor(browser)
    found.enter(service.url, service.token)
    yield found
    assert found.complaints() == []


@pytest.fixture(scope="module")
def ray_cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A cluster of two nodes, or as a file says in `CLUSTER`."""
    from tests.system.ray_cluster import RayCluster  # which skips the tests of a file where Ray is not installed

    cluster = RayCluster(**{"nodes": 2, **getattr(request.module, "CLUSTER", {})})
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    """A Kubernetes cluster of two nodes with controllers."""
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a", cpus=2), node("b", cpus=2)])
        controllers = Controllers(found.kubeconfig)
        controllers.define()
        with controllers:
            yield found


@pytest.fixture
def serve(cluster: KubernetesCluster, tmp_path: Path) -> Iterator[Services]:
    """Services that take care of its objects."""
    services = Services(cluster, tmp_path)
    yield services
    services.clear()
