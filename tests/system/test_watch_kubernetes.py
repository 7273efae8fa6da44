"""A cluster with GPUs that others use: what `gantline watch kubernetes` sees of it, and what a service leaves to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.live.specs import contact_of
from tests.system.kubernetes import KubernetesCluster, empty, kubernetes_cluster, missing, node, wait_for
from tests.system.kubernetes_bench import context
from tests.typed import typed

from gantline.engine.executor import Can, News, Order, Report, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.kubernetes.runner import KubernetesRunner
from gantline.live.runners.runner_events import NodeState, RunnerEvents

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
_PRODUCT = "NVIDIA-A100-SXM4-80GB"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesCluster]:
    with kubernetes_cluster(tmp_path_factory.mktemp("kubernetes")) as found:
        found.start_kubelets([node("a", gpus=4, product=_PRODUCT), node("b", gpus=4, product=_PRODUCT), node("c")])
        found.pod("theirs", "a", gpus=3, activeDeadlineSeconds=3_600)
        wait_for(lambda: found.pods()[0]["status"]["phase"] == "Running", "the pod of another")
        yield found
        empty(found)


def test_what_runs_and_waits_is_what_the_api_shows_and_questions_are_answered(
    cluster: KubernetesCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.pod("waits", gpus=2, activeDeadlineSeconds=60)
    assert typed(f"watch kubernetes --kubeconfig {cluster.kubeconfig} --out {tmp_path}/now.json") == 0
    look = json.loads((tmp_path / "now.json").read_text())
    jobs = {job["id"]: job for job in look["snapshot"]["jobs"]}
    assert {name: job["gpus"] for name, job in jobs.items()} == {"default/theirs": 3, "default/waits": 2}
    assert jobs["default/theirs"]["devices"] == [0, 1, 2]
    assert [one["type"] for one in look["snapshot"]["cluster"]["nodes"]] == ["a100", "a100"]
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    assert typed("what-if --watch kubernetes --policy srtf -o json") == 0
    assert typed(f"explain default/waits --snapshot {tmp_path}/now.json") == 0


def test_a_gang_has_gpus_that_others_do_not_use(cluster: KubernetesCluster, tmp_path: Path) -> None:
    runner = KubernetesRunner.open(replace(context(cluster, tmp_path), devices=None))
    told: list[RunnerEvents] = []
    try:
        runner.attach(contact_of(runner, lambda row: Launch(("sleep", "1000")), told.append))
        assert [(one.name, one.type, one.gpus) for one in runner.cluster.nodes] == [("a", "a100", 4), ("b", "a100", 4)]
        assert Can.COLLOCATE not in runner.abilities
        drained = {one.name for events in told for one in events.nodes if one.state is NodeState.DRAINED}
        assert drained == {"a:1", "a:2", "a:3"}
        runner.send(Order(Verb.START, 0, 1, (0,)), 0.0)
        runner.send(Order(Verb.START, 1, 1, (4, 5)), 0.0)

        def started() -> list[Report]:
            return [report for events in told for report, _ in events.reports if report.news is News.STARTED]

        wait_for(lambda: {report.row for report in started()} == {0, 1}, "both gangs")
        ours = {pod["metadata"]["name"]: pod for pod in cluster.pods() if pod["metadata"]["name"].startswith("gantline-")}
        asked = {pod["spec"]["nodeName"]: pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] for pod in ours.values()}
        assert asked == {"a": "1", "b": "2"}
    finally:
        runner.close()
