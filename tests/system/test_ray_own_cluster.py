"""A service that is given no Ray cluster starts one on its machine, which outlives it as its jobs do and ends with `gantline down`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from tests.live.service.asking import becomes
from tests.live.specs import until
from tests.system.cluster_lives import Lives
from tests.system.ray_cluster import RayCluster  # noqa: F401 -- it skips what follows where there is no Ray

from gantline.live.runners.local.files import read_json
from gantline.live.runners.ray.connection import OwnCluster


def processes(folder: str) -> list[int]:
    """Of the cluster in that folder."""
    found = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        with suppress(OSError):
            if folder.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def test_it_outlives_a_service_that_is_killed_and_ends_with_its_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    lives = Lives(tmp_path, "ray", {}, seed=1)
    own = OwnCluster(lives.home.path)
    lives.start("fifo")
    try:
        cluster = read_json(str(own.file)) or {}
        assert processes(cluster["folder"])
        line = f"echo $GANTLINE_EPOCH >> {tmp_path}/began; until [ -e {tmp_path}/go ]; do sleep 0.1; done"
        (job,) = lives.client.submit(["/bin/sh", "-c", line])
        until((tmp_path / "began").exists, "its start")
        lives.kill()
        lives.start()
        assert read_json(str(own.file)) == cluster, "it was started anew"
        (tmp_path / "go").touch()
        becomes(lives.client, job, "succeeded")
        assert len((tmp_path / "began").read_text().split()) == 1
        lives.client.shutdown(drain=True)
        lives.service.join()
        assert not own.file.exists()
        until(lambda: not processes(cluster["folder"]), "the end of the cluster")
    finally:
        lives.kill()
        own.stop()
