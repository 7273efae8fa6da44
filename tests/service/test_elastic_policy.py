"""Elastic policies resize live jobs that name a range: the very file of the page on writing policies, and Sia."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.project.pages import blocks
from tests.service.conftest import Running, until

from gantline.service.home import Home
from gantline.service.options import Options

PAGE = Path(__file__).parents[2] / "docs" / "policies" / "writing.md"
SLEEP = {"run": "sleep 600"}


@pytest.mark.parametrize("policy", ["growing.py", "sia"])
def test_a_live_job_with_a_range_grows_and_shrinks(tmp_path: Path, policy: str) -> None:
    settings: dict[str, float] = {"restart": 0.0}
    if policy == "growing.py":
        (text,) = (block.text for block in blocks(PAGE.read_text(encoding="utf-8")) if block.orders.get("file") == policy)
        (tmp_path / policy).write_text(text, encoding="utf-8")
        policy, settings = f"{tmp_path}/{policy}:Growing", {"calm": 0.0}
    running = Running(Options(Home(tmp_path / "home"), devices="cpu:4", policy=policy, settings=settings)).start()
    try:
        owner = running.client()

        def holds(job: str) -> int:
            return len(owner.job(job)["devices"])

        (elastic,) = owner.submit(SLEEP, resources={"gpus": "1:3"}, estimate="2h")
        until(lambda: holds(elastic) == 3, "all that it can use")
        (rigid,) = owner.submit(SLEEP, resources={"gpus": 2}, estimate="1h")
        until(lambda: holds(elastic) == 2 and holds(rigid) == 2, "room for the other")
        owner.cancel(rigid)
        until(lambda: holds(elastic) == 3, "all that it can use again")
    finally:
        running.stop()
