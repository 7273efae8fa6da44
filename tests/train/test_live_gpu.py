"""The experiment on a real GPU: its predictions can be made again from what was measured, and its parts work where there is none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gantline.core.errors import NotFoundError
from gantline.files.bundles import default_bundle, read_bundle
from gantline.files.policies import load_policy

PLACE = Path(__file__).parents[2] / "examples" / "live_gpu"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's modules."""
    monkeypatch.syspath_prepend(str(PLACE))
    import predict

    yield predict
    for name in ("predict", "run", "live", "workload"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("series", "errors", "said"),
    [
        (
            "measured",
            {"fifo": -0.103, "srtf": -0.168, "las": -0.003, "allox": 0.030, "packed": 0.026},
            "6.6% on average, 16.8% at worst",
        ),
        (
            "measured_busy",
            {"fifo": 0.057, "srtf": 0.073, "las": -0.089, "allox": 0.158},
            "9.4% on average, 15.8% at worst",
        ),
        (
            "measured_over_http",
            {"srtf": 0.113, "las": 0.162, "packed": 0.068, "allox": 0.111, "fifo": 0.296},
            "15.0% on average, 29.6% at worst",
        ),
        (
            "measured_first",
            {"fifo": -0.006, "allox": -0.018, "srtf": -0.042, "packed": 0.038, "las": 0.118},
            "4.4% on average, 11.8% at worst",
        ),
    ],
)
def test_the_published_errors_follow_from_the_published_measurements(
    parts: Any, capsys: pytest.CaptureFixture[str], series: str, errors: dict[str, float], said: str
) -> None:
    bundle, told = read_bundle(PLACE / series / "profiles.json"), json.loads((PLACE / series / "live.json").read_text())
    found = {policy: round(error, 3) for policy, error in parts.compare(bundle, told).items()}
    assert found == errors
    assert said in capsys.readouterr().out


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


def test_the_packed_policy_knows_what_pays() -> None:
    policy = load_policy(f"{PLACE / 'packed.py'}:Packed", {"pairs": "a+b=0.7/0.6,a+a=0.5/0.5"})
    assert policy.gain("b", "a") == pytest.approx(1.3)  # type: ignore[attr-defined]
    assert policy.gain("a", "a") == pytest.approx(1.0)  # type: ignore[attr-defined]
    assert policy.gain("a", "c") == 0.0  # type: ignore[attr-defined]
