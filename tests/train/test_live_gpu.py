"""The experiment on a real GPU: its predictions can be made again from what was measured, and its parts work where there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gantline.core.errors import NotFoundError
from gantline.files.bundles import default_bundle

PLACE = Path(__file__).parents[2] / "examples" / "live_gpu"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's modules."""
    monkeypatch.syspath_prepend(str(PLACE))
    import predict

    yield predict
    for name in ("predict", "run", "live", "history", "workload"):
        sys.modules.pop(name, None)


def test_the_published_errors_follow_from_the_published_measurements(parts: Any, tmp_path: Path, long: bool) -> None:
    for name in ("profiles.json", "live.json"):
        (tmp_path / name).write_text((PLACE / "measured" / name).read_text(encoding="utf-8"), encoding="utf-8")
    policies = {"fifo": -0.011, "afs-l": -0.027, "gavel": -0.014, "sia": -0.022} if long else {"fifo": -0.011}
    found = parts.compare(tmp_path, 200 if long else 3, only=list(policies), history_of="none")
    assert {name: round(one["mean"]["clock"], 3) for name, one in found.items()} == policies
    assert [round(one, 2) for one in found["fifo"]["mean"]["measured"]] == [11.72, 10.18, 10.25]
    assert round(found["fifo"]["mean"]["whole"], 3) == (0.048 if long else 0.008)  # of the first draws, which are the same every time


def test_the_default_profiles_are_measured_and_usable() -> None:
    bundle = default_bundle()
    assert {"conv-512", "transformer-64", "recommendation-128"} <= set(bundle.jobs)
    table = bundle.throughputs()
    assert set(table.types) == {"h200", "cpu"}
    for job in bundle.jobs.values():
        assert all(speed.runs and speed.source == "measured" and speed.leave and speed.resume for speed in job.alone.values())
        assert len(job.pairs) == len(bundle.jobs)
        assert all(0.0 < pairing.ratio <= 1.0 for pairing in job.pairs.values())
        assert not any(word.startswith("/") for word in job.command)
    with pytest.raises(NotFoundError):
        bundle["bert"]
