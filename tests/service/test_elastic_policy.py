"""An elastic policy from a file resizes live jobs that name a range: the very file of the page on writing policies."""

from __future__ import annotations

from pathlib import Path

from tests.project.pages import blocks
from tests.service.conftest import Running, until

from gantline.service.home import Home
from gantline.service.options import Options

PAGE = Path(__file__).parents[2] / "docs" / "policies" / "writing.md"
SLEEP = {"run": "sleep 600"}


def test_a_policy_from_a_file_grows_and_shrinks_a_live_job_with_a_range(tmp_path: Path) -> None:
    (text,) = (block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.orders.get("file") == "growing.py")
    (tmp_path / "growing.py").write_text(text, encoding="utf-8")
    options = Options(Home(tmp_path / "home"), devices="cpu:3", policy=f"{tmp_path}/growing.py:Growing", settings={"calm": 0.0})
    running = Running(options).start()
    try:
        owner = running.client()

        def holds(job: str) -> int:
            return len(owner.job(job)["devices"])

        (elastic,) = owner.submit(SLEEP, resources={"gpus": "1:3"}, estimate="2h")
        until(lambda: holds(elastic) == 3, "all of the machine")
        (rigid,) = owner.submit(SLEEP, resources={"gpus": 2}, estimate="1h")
        until(lambda: holds(elastic) == 1 and holds(rigid) == 2, "room for the other")
        owner.cancel(rigid)
        until(lambda: holds(elastic) == 3, "all of the machine again")
    finally:
        running.stop(drain=False)
