"""What a killed service leaves in the folders of its gangs."""

from __future__ import annotations

from pathlib import Path

from gantline.engine.executor import News
from gantline.runtime.kubernetes.access import ClusterAccess
from gantline.runtime.kubernetes.client import ApiClient
from gantline.runtime.kubernetes.gang import GangEnd, PodGang
from gantline.runtime.kubernetes.manifests import PodTerms
from gantline.runtime.kubernetes.runner import KubernetesRunner


def test_a_folder_without_an_order_is_no_gang(tmp_path: Path) -> None:
    """The service was killed between the two: the order is repeated, and begins as if nothing had been."""
    (tmp_path / "jobs" / "1" / "1").mkdir(parents=True)
    ran = PodGang("2", 1, tmp_path / "jobs" / "2" / "1", places={"n1": [0, 1]})
    ran.write_order()
    ended = PodGang("3", 4, tmp_path / "jobs" / "3" / "4", verdict=GangEnd(News.FAILED, 7, "why"))
    ended.write_end()
    runner = KubernetesRunner(tmp_path, ApiClient(ClusterAccess("http://127.0.0.1:9")), PodTerms("jobs", "home", ""), True, 300.0)
    assert [(one.job, one.epoch, one.devices, one.is_over) for one in runner.roll_call()] == [
        ("2", 1, ("n1:0", "n1:1"), False), ("3", 4, (), True),
    ]  # fmt: skip
