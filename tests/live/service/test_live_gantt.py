"""The example that draws what a service has done: from events to stays on devices."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).parents[3] / "examples" / "live_gantt.py"


def state(time: float, job: str, state: str, *devices: str) -> dict[str, Any]:
    return {"event": "state", "time": time, "job": job, "state": state, "devices": list(devices)}


def test_a_job_stays_on_a_device_until_it_has_given_it_up(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("live_gantt", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    events = [
        state(0, "1", "starting", "cpu:0"), state(1, "1", "running", "cpu:0"), state(2, "1", "resizing", "cpu:0", "cpu:1"),
        state(4, "1", "pending"), {"event": "finished", "time": 5.0, "job": "1"}, state(4, "2", "running", "cpu:0"),
        state(6, "3", "pending"),
    ]  # fmt: skip
    found = example.spans(events)
    assert sorted(found) == [("1", "cpu:0", 0, 2), ("1", "cpu:0", 2, 4), ("1", "cpu:1", 2, 4), ("2", "cpu:0", 4, 6)]
    example.draw(found, str(tmp_path / "live.png"))
    assert (tmp_path / "live.png").stat().st_size > 5000
