"""The worked example: trained in seconds, better than FIFO and than untrained on unseen workloads, and then a policy like any other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gantline
from gantline.cli.main import main
from gantline.conformance import check_policy
from gantline.files.policies import load_policy
from gantline.workload.trace import Trace

FOLDER = Path(__file__).parents[2] / "examples" / "learned"
LEARNED = str(FOLDER / "learned.yaml")


@pytest.fixture(scope="module")
def train() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learned_train", FOLDER / "train.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_training_for_seconds_beats_fifo_on_workloads_it_has_not_seen(
    train: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "learned.yaml"
    train.main(["--generations", "1", "--pairs", "3", "--episodes", "1", "--workers", "1", "--judges", "3", "--out", str(out)])
    assert "beats fifo by" in capsys.readouterr().out
    assert len(load_policy(str(out)).weights) == 12  # type: ignore[attr-defined]


def test_what_was_trained_for_minutes_is_better_than_untrained(train: ModuleType) -> None:
    """Not only because jobs that fit may pass others, which the untrained policy lets them, too."""
    seeds = range(train.UNSEEN + 100, train.UNSEEN + 103)
    trained, untrained = (
        np.array([train.play(np.array(weights), seed) for seed in seeds])
        for weights in (load_policy(LEARNED).weights, np.zeros(12))  # type: ignore[attr-defined]
    )
    assert trained.mean() > untrained.mean() > -1.0


def test_the_policy_decides_in_a_run_as_it_did_in_the_environment(train: ModuleType) -> None:
    seed, weights = train.UNSEEN + 5, np.array(load_policy(LEARNED).weights)  # type: ignore[attr-defined]
    trace = Trace.generate("day", seed, **train.WORKLOAD["settings"])
    ours, fifo = (gantline.simulate(trace, train.CLUSTER, policy).summary["average_jct"] for policy in (LEARNED, "fifo"))
    assert train.play(weights, seed) == pytest.approx(-ours / fifo)


def test_it_runs_on_both_clocks() -> None:
    trace = Trace.generate("day", 1, jobs=40, gpus=16)
    one, other = (gantline.simulate(trace, "4x4", LEARNED, executor=executor).summary for executor in ("instant", "acknowledged"))
    assert one["log_hash"] == other["log_hash"]


def test_it_conforms(one_story: None) -> None:
    report = check_policy(load_policy(LEARNED), limit=2.0)
    assert [finding.message for finding in report.findings if finding.result == "FAILED"] == []
    assert report.passed


def test_weights_for_other_features_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "day", "--cluster", "8x8", "--policy", LEARNED, "--set", "weights=1,2"]) == 2
    assert "2 weights for 12 features" in capsys.readouterr().err
