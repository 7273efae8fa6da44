"""What a killed service leaves in the folders of its gangs."""

from __future__ import annotations

from pathlib import Path

import pytest

from gantline.engine.executor import News
from gantline.live.runners.kubernetes.access import ClusterAccess
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.kubernetes.gang_lifecycle import GangEnd, PodGang
from gantline.live.runners.kubernetes.pods_and_nodes import Pod, PodTerms, read_pod
from gantline.live.runners.kubernetes.runner import KubernetesRunner


def test_a_folder_without_an_order_is_no_gang(tmp_path: Path) -> None:
    """The service was killed between the two: the order is repeated, and begins as if nothing had been."""
    (tmp_path / "jobs" / "1" / "1").mkdir(parents=True)
    ran = PodGang("2", 1, tmp_path / "jobs" / "2" / "1", places={"n1": [0, 1]})
    ran.write_order()
    ended = PodGang("3", 4, tmp_path / "jobs" / "3" / "4", verdict=GangEnd(News.FAILED, 7, "why"))
    ended.write_end()
    runner = KubernetesRunner(tmp_path, ApiClient(ClusterAccess("http://127.0.0.1:9")), PodTerms("jobs", "home", ""), True, 300.0)
    assert [(one.job, one.epoch, one.devices, one.is_over) for one in runner.adopt()] == [
        ("2", 1, ("n1:0", "n1:1"), False), ("3", 4, (), True),
    ]  # fmt: skip


def ended(name: str, code: int) -> Pod:
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"state": {"terminated": {"exitCode": code}}}]}
    return read_pod({"metadata": {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n1"}, "status": status})


@pytest.mark.parametrize(
    ("stop_code", "codes", "news", "forced"),
    [
        (0, (0, 0), News.STOPPED, False),  # a job whose ranks save and leave with 0 when they are told to stop has not finished
        (15, (15, 15), News.STOPPED, False),
        (15, (0, 0), News.FINISHED, False),  # it had done all before it could stop
        (None, (0, 0), News.FINISHED, False),
        (0, (0, 137), News.STOPPED, True),
        (0, (0, 7), News.STOPPED, True),
    ],
)
def test_a_preempted_gang_has_finished_only_where_its_codes_cannot_mean_that_it_stopped(
    tmp_path: Path, stop_code: int | None, codes: tuple[int, ...], news: News, forced: bool
) -> None:
    gang = PodGang("1", 1, tmp_path, places={"n1": [0], "n2": [0]}, is_stopping=True, is_running=True, stopped_exit=stop_code)
    end = gang.ended({name: ended(name, code) for name, code in zip(gang.names, codes)})
    assert (end.news, end.forced) == (news, forced)
    gang.verdict = end
    gang.write_end()
    read = PodGang.read("1", 1, tmp_path).verdict
    assert read.news is news, "and a service that adopts it tells the same"
