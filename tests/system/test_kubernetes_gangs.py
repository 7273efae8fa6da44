"""Gangs of pods on a real API server: whole or not at all, through losses, deletions, outages and other schedulers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_bench import KubernetesBench

from gantline.core.errors import RefusedError
from gantline.core.inputs import Fault
from gantline.engine.executor import News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.kubernetes.access import path_of
from gantline.live.runners.runner_events import Ending, NodeState

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
Make = Callable[..., KubernetesBench]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a", cpus=2), node("b", cpus=2)])
        yield found


@pytest.fixture
def make(cluster: KubernetesCluster, tmp_path: Path) -> Iterator[Make]:
    """Runners on the cluster; devices 0 and 1 are node a's, 2 and 3 node b's."""
    made: list[KubernetesBench] = []

    def bench(launch: Launch | None = None, **options: str) -> KubernetesBench:
        made.append(KubernetesBench(cluster, tmp_path, launch, **options))
        return made[-1]

    yield bench
    for one in made:
        one.close()
    for name in ("a", "b"):
        cluster.tell_kubelets(f"back {name}")
    wait_for(lambda: len(cluster.ready()) == 2, "both nodes")
    empty(cluster)


def told(bench: KubernetesBench, news: News, row: int = 0, epoch: int = 1) -> tuple[Report, Ending | None]:
    """Wait for a report."""
    found = [(report, ending) for report, ending in bench.reports() if (report.news, report.row, report.epoch) == (news, row, epoch)]
    if found:
        return found[-1]
    wait_for(
        lambda: any((report.news, report.row, report.epoch) == (news, row, epoch) for report, _ in bench.reports()),
        f"{news.value} of row {row}, epoch {epoch}; told {bench.reports()}",
    )
    return told(bench, news, row, epoch)


def names(cluster: KubernetesCluster) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in cluster.pods())


def services(cluster: KubernetesCluster) -> list[str]:
    return [one["metadata"]["name"] for one in cluster.client.get(path_of("services", "default"))["items"]]


def start(bench: KubernetesBench, *devices: int, row: int = 0, epoch: int = 1) -> None:
    bench.send(Order(Verb.START, row, epoch, devices))
    assert set(told(bench, News.STARTED, row, epoch)[0].devices) == set(devices)


def test_a_gang_over_two_nodes_is_a_pod_on_each_and_its_output_is_read_by_offset(make: Make, cluster: KubernetesCluster) -> None:
    bench = make(Launch(("echo rank $RANK of $WORLD_SIZE on $NODE_RANK; sleep 1000",), shell=True, processes=0))
    start(bench, 0, 1, 2)
    assert sorted(pod["spec"]["nodeName"] for pod in cluster.pods()) == ["a", "b"]
    wait_for(lambda: "gantline-job0-1" in services(cluster), "the name under which they meet")
    output = wait_for(lambda: (found := bench.runner.output("job0", 1)).size >= 3 * len("[0] rank 0 of 3 on 0\n") and found, "output")
    lines = sorted(output.read(0, output.size).decode().splitlines())
    assert lines == ["[0] rank 0 of 3 on 0", "[0] rank 1 of 3 on 0", "[1] rank 2 of 3 on 1"]
    assert output.read(4, 4) == b"rank"
    output.close()
    bench.send(Order(Verb.STOP, 0, 1))
    told(bench, News.STOPPED)
    wait_for(lambda: not names(cluster), "removal of the pods")
    wait_for(lambda: "gantline-job0-1" not in services(cluster), "removal of the name under which they met")
    kept = bench.runner.output("job0", 1)
    assert sorted(kept.read(0, kept.size).decode().splitlines()) == lines  # the pods are gone, what they printed is not
    kept.close()


def test_when_one_pod_is_deleted_by_hand_the_whole_gang_ends_and_that_is_not_the_jobs_fault(make: Make, cluster: KubernetesCluster) -> None:
    bench = make()
    start(bench, 0, 2)
    cluster.client.delete(path_of("pods", "default", "gantline-job0.1.1"))
    report, ending = told(bench, News.FAILED)
    assert report.lost is Fault.ENGINE
    assert "gantline-job0.1.1 was deleted, and not by this service" in ending.why
    wait_for(lambda: not names(cluster), "removal of both pods")


def test_labels_removed_by_hand_lose_nothing(make: Make, cluster: KubernetesCluster) -> None:
    bench = make()
    start(bench, 0)
    path = path_of("pods", "default", "gantline-job0.1.0")
    cluster.client.merge(path, {"metadata": {"labels": None, "annotations": {"gantline.io/epoch": "9"}}})
    bench.end(3)
    _, ending = told(bench, News.FAILED)
    assert ending.exit == 3


def test_devices_of_a_pod_whose_annotations_were_removed_stay_its_own(make: Make, cluster: KubernetesCluster) -> None:
    bench = make()
    start(bench, 2, 3)
    before = {pod["metadata"]["name"]: pod["metadata"]["resourceVersion"] for pod in cluster.pods()}
    cluster.client.merge(path_of("pods", "default", "gantline-job0.1.0"), {"metadata": {"annotations": None}})
    wait_for(lambda: bench.runner.cache.pods["gantline-job0.1.0"].version > int(before["gantline-job0.1.0"]), "the edited pod")
    cluster.pod("theirs", "a", cpu="900m")
    wait_for(lambda: any(one.name == "a:1" and one.state is NodeState.DRAINED for one in bench.news), "a device that others use")
    assert bench.runner.cache.pods["gantline-job0.1.0"].places == (0, 1)
    bench.send(Order(Verb.START, 1, 1, (2,)))  # a mistaken order for one of its devices
    bench.send(Order(Verb.START, 2, 1, (0,)))
    told(bench, News.STARTED, row=2)
    assert "gantline-job1.1.0" not in names(cluster)
    bench.send(Order(Verb.STOP, 0, 1))
    told(bench, News.STARTED, row=1)  # when its devices are free


def test_services_of_two_namespaces_see_each_others_pods_as_used(make: Make, cluster: KubernetesCluster, tmp_path: Path) -> None:
    cluster.client.create(path_of("namespaces"), {"metadata": {"name": "team"}})
    first = make()
    start(first, 0, 1)
    second = KubernetesBench(cluster, tmp_path / "team", namespace="team")
    try:

        def closed(bench: KubernetesBench) -> set[str]:
            last = {one.name: one.state for one in bench.news}
            return {name for name, state in last.items() if state is NodeState.DRAINED}

        wait_for(lambda: closed(second) == {"a:0", "a:1"}, "devices of the first service")
        start(second, 2)
        wait_for(lambda: len(closed(first)) == 1, "the device of the second service")
        assert closed(first) <= {"b:0", "b:1"}
        first.send(Order(Verb.STOP, 0, 1))
        told(first, News.STOPPED)
        wait_for(lambda: not closed(second), "devices that are free again")
        second.send(Order(Verb.STOP, 0, 1))
        told(second, News.STOPPED)
        wait_for(lambda: not closed(first) and not cluster.pods("team"), "the end of the second service's pod")
    finally:
        second.close()


def test_a_clock_that_is_an_hour_slow_is_mentioned_and_moves_no_start(
    make: Make, cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = time.time
    monkeypatch.setattr("gantline.live.runners.kubernetes.client.time", SimpleNamespace(time=lambda: slow() - 3600.0))
    bench = make()
    assert any("the API server's clock differs from this one by 3" in note for note in bench.runner.notes())
    start(bench, 0)
    (present,) = bench.begin_again()
    assert abs(present.since - (slow() - 3600.0)) < 600.0


def test_an_image_that_cannot_be_pulled_is_the_jobs_failure_with_the_kubelets_words(make: Make, cluster: KubernetesCluster) -> None:
    bench = make(Launch(("true",), image="missing:latest"))
    bench.send(Order(Verb.START, 0, 1, (0,)))
    report, ending = told(bench, News.FAILED)
    assert report.lost is Fault.JOB
    assert "its image cannot be pulled on node a: Back-off pulling image" in ending.why


def test_half_a_gang_is_given_back_with_the_reason(make: Make, cluster: KubernetesCluster) -> None:
    bench = make(**{"gang-timeout": "3"})
    cluster.tell_kubelets("mute b")
    bench.send(Order(Verb.START, 0, 1, (0, 2)))
    wait_for(lambda: any(pod["status"]["phase"] == "Running" for pod in cluster.pods()), "half of the gang")
    wait_for(lambda: all(pod["metadata"].get("deletionTimestamp") for pod in cluster.pods()), "the gang to be given back")
    cluster.tell_kubelets("back b")
    report, ending = told(bench, News.FAILED)
    assert report.lost is Fault.ENGINE
    assert "1 of 2 pods did not start within 3 s" in ending.why
    assert bench.has_saved()  # the half that ran was asked to end


def test_a_lost_node_is_told_before_what_it_cost_and_its_return_finds_the_epoch_over(make: Make, cluster: KubernetesCluster) -> None:
    bench = make()
    start(bench, 0, 2)
    cluster.tell_kubelets("cut b")
    report, _ = told(bench, News.FAILED)
    assert report.lost is Fault.NODE
    assert [(one.name, one.state) for one in bench.news if one.name == "b"][-1] == ("b", NodeState.LOST)
    start(bench, 1, epoch=2)  # elsewhere, at once
    bench.send(Order(Verb.START, 1, 1, (2,)))  # on the device that the old process may still use
    cluster.tell_kubelets("back b")
    told(bench, News.STARTED, row=1)
    assert names(cluster) == ["gantline-job0.2.0", "gantline-job1.1.0"]
    assert any((one.name, one.state) == ("b", NodeState.UP) for one in bench.news)


def test_cordons_taints_and_pods_of_others_are_obeyed(make: Make, cluster: KubernetesCluster) -> None:
    bench, path = make(), path_of("nodes", name="b")

    def last(name: str) -> NodeState | None:
        return next((one.state for one in reversed(bench.news) if one.name == name), None)

    cluster.client.merge(path, {"spec": {"unschedulable": True}})
    wait_for(lambda: last("b") is NodeState.DRAINED, "cordon")
    cluster.client.merge(path, {"spec": {"unschedulable": None, "taints": [{"key": "team", "effect": "NoSchedule"}]}})
    wait_for(lambda: bench.runner.cache.nodes["b"].why.startswith("it has the taint team"), "taint")
    cluster.client.merge(path, {"spec": {"taints": None}})
    wait_for(lambda: last("b") is NodeState.UP, "return")
    cluster.pod("theirs", "b", cpu="900m")
    wait_for(lambda: last("b:1") is NodeState.DRAINED, "a device that others use")
    cluster.client.delete(path_of("pods", "default", "theirs"), 1)
    wait_for(lambda: last("b:1") is NodeState.UP, "the device")


def test_a_second_scheduler_is_refused_in_words_and_the_same_home_comes_back_at_once(
    make: Make, cluster: KubernetesCluster, tmp_path: Path
) -> None:
    bench = make()
    with pytest.raises(RefusedError, match="another scheduler holds the lease 'gantline'"):
        KubernetesBench(cluster, tmp_path / "other")
    start(bench, 0)
    before = time.monotonic()
    (present,) = bench.begin_again()
    assert (present.job, present.epoch, present.devices, present.is_over) == ("job0", 1, ("a:0",), False)
    told(bench, News.STARTED)
    assert time.monotonic() - before < 60


def test_pods_of_another_home_are_not_taken_for_ones_own(make: Make, cluster: KubernetesCluster, tmp_path: Path) -> None:
    bench = make()
    start(bench, 0)
    bench.close()  # which gives the lease back
    with pytest.raises(RefusedError, match="1 pods of another service's jobs"):
        KubernetesBench(cluster, tmp_path / "other")


@pytest.mark.parametrize("away", [3.0, pytest.param(60.0, marks=pytest.mark.long)])  # seconds
def test_the_api_server_may_be_away_for_a_while(make: Make, cluster: KubernetesCluster, away: float) -> None:
    """Jobs go on, what was ordered meanwhile is done once, and what ended meanwhile is told."""
    bench = make()
    start(bench, 0)
    start(bench, 1, row=1)
    cluster.stop_server()
    bench.send(Order(Verb.START, 2, 1, (2,)))
    bench.finish(0)
    time.sleep(away)
    assert bench.runner.alive
    lists = bench.runner.client.lists
    cluster.start_server(wait=False)
    answers = wait_for(lambda: cluster.answers() and time.monotonic(), "answer of the server")
    told(bench, News.FINISHED)
    told(bench, News.STARTED, row=2)
    print(f"caught up {time.monotonic() - answers:.1f} s after the first answer of the server")
    assert not [report for report, _ in bench.reports() if report.row == 1 and report.news is not News.STARTED]
    assert names(cluster).count("gantline-job2.1.0") == 1
    again = sum(one.gone for one in bench.runner.followers)  # a server that was started anew does not know what was before
    assert bench.runner.client.lists == lists + again


def test_nothing_is_listed_again_and_a_change_is_one_write(make: Make, cluster: KubernetesCluster) -> None:
    bench = make()
    client = bench.runner.client
    assert client.lists == 3  # nodes, jobs and pods, at the start
    lease = bench.runner.lease

    def written() -> int:
        return client.writes - lease.renewals

    before = written()
    start(bench, 0)
    assert written() - before == 2  # made, bound
    bench.send(Order(Verb.STOP, 0, 1))
    told(bench, News.STOPPED)
    wait_for(lambda: not names(cluster), "removal of the pod")
    assert written() - before == 4  # deleted, let go
    assert client.lists == 3
