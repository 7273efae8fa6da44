"""A training job and the real service: what it tells arrives, it saves and leaves when it is stopped, and goes on where it was."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.live.service.asking import becomes, over, succeed
from tests.live.service.conftest import Running, until

from gantline.cli.main import main
from gantline.cli.profile import idle_node
from gantline.live.service.client import Client

PLAIN = str(Path(__file__).parents[3] / "examples" / "train_plain.py")
SAVES: dict[str, Any] = {"checkpoint": {"grace": "60s"}}

WISHES = """
import time
from gantline import train

job = train.join(hooks=[train.ScheduledResize({0: 1, 5: 2})], interval=0.1)
job.keep()
for step in job.steps(10**6):
    print(step, job.gpus, flush=True)
    time.sleep(0.05)
    if job.gpus == 2:
        break
"""


def test_what_a_job_tells_arrives_and_a_requeue_resumes_it(owner: Client) -> None:
    slow_at_first = "exec {} {} --epochs 20 --pause $([ $GANTLINE_EPOCH = 1 ] && echo 0.1 || echo 0.005)"  # half a minute, or two seconds
    (id,) = owner.submit({"run": slow_at_first.format(sys.executable, PLAIN), "shell": True, "name": "line", **SAVES})
    told = until(lambda: (owner.job(id)["progress"] or {}).get("loss") is not None and owner.job(id)["progress"], "a loss")
    assert told["total"] == 20 * 256
    assert 0 < told["done"] < told["total"]
    assert told["throughput"] > 0
    owner.requeue(id)
    until(lambda: owner.job(id)["epoch"] == 2, "its second life")
    saved = until(lambda: (owner.job(id)["progress"] or {}).get("saved"), "what it resumed from")
    assert saved >= told["done"] - 2 * 256
    (job,) = over(owner, id)
    assert job["state"] == "succeeded"
    (last,) = [line for line in "".join(owner.logs(id)).splitlines() if "slope" in line]
    assert last.endswith("after 320 steps")  # none was made twice, none was left out


def test_a_request_of_the_job_itself_is_what_it_asks_for_from_then_on(owner: Client, tmp_path: Path) -> None:
    script = tmp_path / "requests.py"
    script.write_text(WISHES, encoding="utf-8")
    (id,) = owner.submit({"run": [sys.executable, str(script)], **SAVES})
    until(lambda: owner.job(id)["gpus"] == 2, "its request")
    if owner.job(id)["state"] == "running":  # fifo stops nobody to grow him: the next start has two
        owner.requeue(id)
    (job,) = over(owner, id)
    assert (job["state"], job["gpus"]) == ("succeeded", 2)


def test_profiles_are_measured_in_idle_time(owner: Client, service: Running, tmp_path: Path) -> None:
    """The run waits for the job that is there; while it runs nobody comes; afterwards everything is as before."""
    go, file = tmp_path / "go", tmp_path / "profiles.json"
    (busy,) = owner.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.05; done"])
    becomes(owner, busy)
    seen: list[str] = []

    def tell(text: str) -> None:
        seen.append(text)
        go.touch()

    with idle_node(owner, "cpu", tell, look=0.05):
        assert owner.job(busy)["state"] != "running"
        assert owner.nodes()[0]["state"] == "cordoned"
        (later,) = owner.submit(["true"])
        assert owner.job(later)["state"] != "running"
    assert seen == ["waiting until no job is on cpu"]
    succeed(owner, later)
    words = ["--when-idle", "--home", str(service.home), "--devices", "cpu:4", "--steps", "0,5", "--repeats", "1", "--file", str(file)]
    assert main(["profile", "run", "nothing", *words, "--", sys.executable, "-S", "-c", "pass", "{steps}"]) == 0
    assert owner.nodes()[0]["state"] == "up"
