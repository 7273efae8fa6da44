"""What cannot be on a Ray cluster: each with one message that says where, what and how to mend it, and nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.specs import contact_of, until
from tests.system.ray_cluster import RayCluster  # which skips what follows where there is no Ray

from gantline.core.errors import RefusedError, UnreachableError
from gantline.core.inputs import Fault
from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.ray import incarnation
from gantline.live.runners.ray.runner import RayRunner
from gantline.live.runners.runner_events import Ending

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2)
    yield cluster
    cluster.stop()


def test_there_is_no_cluster_at_the_address(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="no Ray cluster answers"):
        RayRunner(tmp_path, "cpu", address="127.0.0.1:1")


def test_ray_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "__version__", "2.9.3")
    with pytest.raises(RefusedError, match=r"Ray 2\.9\.3 is too old"):
        RayRunner.check(None, {})


def test_the_cluster_has_no_gpus(tmp_path: Path, ray_cluster: RayCluster) -> None:
    try:
        with pytest.raises(RefusedError, match=r"no node of this Ray cluster has devices for jobs.*--devices cpu"):
            RayRunner(tmp_path, address=ray_cluster.address)
    finally:
        ray.shutdown()


def test_two_services_do_not_schedule_one_cluster(tmp_path: Path, ray_cluster: RayCluster) -> None:
    first = RayRunner(tmp_path / "first", "cpu", address=ray_cluster.address)
    try:
        with pytest.raises(RefusedError, match=f"the service of {tmp_path}/first on .* schedules this Ray cluster already"):
            RayRunner(tmp_path / "second", "cpu", address=ray_cluster.address)
    finally:
        first.leave(drained=False)
        first.close()
    second = RayRunner(tmp_path / "second", "cpu", address=ray_cluster.address)
    second.leave(drained=False)
    second.close()


def test_half_a_gang_that_never_gets_its_second_node_is_given_back(
    tmp_path: Path, ray_cluster: RayCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program of the cluster is on one of the nodes; the gang runs once it has left."""

    class Other:
        def there(self) -> bool:
            return True

    monkeypatch.setattr(incarnation, "START_LIMIT", 3.0)
    runner, told = RayRunner(tmp_path, "cpu", address=ray_cluster.address), list[tuple[Report, Ending | None]]()
    runner.adopt()
    other = ray.remote(Other).options(num_cpus=2, label_selector={"gantline.io/node": "n2"}).remote()
    assert ray.get(other.there.remote())
    gang = Launch(("true",), shell=True, processes=0)
    runner.attach(contact_of(runner, lambda row: gang, lambda events: told.extend(events.reports)))
    try:
        runner.send(Order(Verb.START, 0, 1, (0, 1, 2)), 0.0)
        ((report, ending),) = until(lambda: list(told))
        assert (report.news, report.lost) == (News.FAILED, Fault.ENGINE)
        assert ending.why == "Ray did not start it within 3 s: other programs of the cluster use devices of n1, n2"
        ray.kill(other)
        monkeypatch.setattr(incarnation, "START_LIMIT", 600.0)
        runner.send(Order(Verb.START, 0, 2, (0, 1, 2)), 0.0)
        until(lambda: (told[-1][0].news, told[-1][0].epoch) == (News.FINISHED, 2))
    finally:
        runner.leave(drained=False)
        runner.close()
