"""Where root serves, the device files of GPUs that a job does not hold cannot be opened by it. Only root can try that.

Device files are made for the occasion: they are named as NVIDIA's and are those of /dev/zero and /dev/full.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.asking import over, started
from tests.live.service.conftest import Running

from gantline.live.runners.local import isolation as closing
from gantline.live.runners.local.devices import FoundGpu, Machine, declared
from gantline.live.runners.local.isolation import Closing, Groups, find_groups
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options

root = pytest.mark.skipif(os.getuid() != 0, reason="only root can close devices to other accounts")
ZERO, FULL = 5, 7
HOLDS, ON_CPU = ({"resources": {"accelerators": f"{kind}:1"}} for kind in ("h200", "cpu"))

SAID = {"group": "closed to it by a control group", "mount": "closed to it by mounts", "": "can be opened by every account"}


@pytest.fixture
def dev() -> Iterator[Path]:
    """A folder of device files that every account may open, where every account can get to."""
    place = Path(tempfile.mkdtemp(prefix="gantline-devices-"))
    place.chmod(0o711)
    (place / "dev").mkdir()
    for k, minor in enumerate((ZERO, FULL)):
        os.mknod(place / "dev" / f"nvidia{k}", 0o020666, os.makedev(1, minor))
        (place / "dev" / f"nvidia{k}").chmod(0o666)
    (place / "dev" / "nvidiactl").touch()
    yield place / "dev"
    shutil.rmtree(place)


@pytest.fixture(params=["group", "mount", ""])
def way(request: pytest.FixtureRequest, dev: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way that there is on this machine, and none."""
    monkeypatch.setattr(closing, "DEV", dev)
    if request.param != "group":
        monkeypatch.setattr(closing, "_group_closes", lambda parent: False)
    if request.param == "":
        monkeypatch.setattr(closing, "_mount_closes", lambda path: False)
    if Closing.find(declared("h200:2"), find_groups()).method != request.param:
        pytest.skip(f"devices cannot be closed by a {request.param} here")
    return str(request.param)


def said(client: Client, command: str, **more: object) -> list[str]:
    (job,) = client.submit(["sh", "-c", command], **more)
    over(client, job)
    return "".join(client.logs(job)).split()


@root
def test_a_job_opens_its_own_gpu_and_no_other(way: str, dev: Path) -> None:
    told: list[str] = []
    running = Running(Options(Home(dev.parent / "home"), devices="h200:2,cpu:2", run_as="users"), tell=told.append).start()
    try:
        running.client().put("/v1/users/ann", {"account": "nobody"})
        running.client().put("/v1/users/ben", {"account": "daemon"})
        tries = f"for k in 0 1; do head -c 1 {dev}/nvidia$k > /dev/null 2>&1 && echo $k; done; echo visible=$CUDA_VISIBLE_DEVICES"
        ann, ben = running.client("ann"), running.client("ben")
        first = started(ann, ["sh", "-c", "sleep 1000"], **HOLDS)
        opened = said(ben, tries, **HOLDS)
        without = said(ben, tries, **ON_CPU)
        of_root = said(running.client(), tries, **ON_CPU)
        ann.cancel(first)
    finally:
        running.stop()
    assert opened == (["1", "visible=0"] if way else ["0", "1", "visible=1"])
    assert without == (["visible="] if way else ["0", "1", "visible="])
    assert of_root == ["0", "1", "visible="]
    (note,) = [line for line in told if "accounts" in line]
    assert {"group": "closed to it by a control group", "mount": "closed to it by mounts", "": "can be opened by every account"}[
        way
    ] in note


def test_files_are_found_by_what_nvml_says(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first GPU by NVML may have another number than its file; a GPU that is not served is closed as well."""
    monkeypatch.setattr(closing, "gpus_found", lambda: [FoundGpu("h200", "GPU-b", 1), FoundGpu("h200", "GPU-a", 0)])
    assert closing.device_files(declared("h200:1"), dev) == {"0": f"{dev}/nvidia1", f"{dev}/nvidia0": f"{dev}/nvidia0"}
    by_uuid = Machine(declared("h200:2").cluster, {"h200": ("GPU-b", "GPU-a")})
    assert closing.device_files(by_uuid, dev) == {"GPU-b": f"{dev}/nvidia1", "GPU-a": f"{dev}/nvidia0"}
    group = Closing(closing.device_files(by_uuid, dev), "group")
    assert group.numbers(["GPU-a"]) == [f"c 1:{FULL} rwm"]
    assert group.visible(["GPU-a"]) == ["GPU-a"]
    assert Closing.find(declared("cpu:2"), Groups(), dev.parent / "nothing").words() == ""


@root
def test_a_job_whose_devices_cannot_be_closed_does_not_run(dev: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was promised when the service began is kept, or nothing runs."""
    lost = dev.parent / "no-hierarchy"
    monkeypatch.setattr(closing, "DEV", dev)
    monkeypatch.setattr(closing, "_group_closes", lambda parent: True)
    monkeypatch.setattr("gantline.live.runners.local.runner.find_groups", lambda: Groups(1, {"devices": str(lost / ("x" * 300))}))
    running = Running(Options(Home(dev.parent / "home"), devices="h200:2", run_as="users")).start()
    try:
        running.client().put("/v1/users/ann", {"account": "nobody"})
        (job,) = running.client("ann").submit(["true"], **HOLDS)
        (ended,) = over(running.client(), job)
    finally:
        running.stop()
    assert ended["state"] == "failed"
    assert "devices of other jobs cannot be closed" in ended["why"]
