"""The worked example: trained in seconds, better than FIFO and than untrained on unseen workloads, and then a policy like any other."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import gantline
from gantline.cli.main import main
from gantline.lab.conformance import check_policy
from gantline.traces.files.policies import load_policy
from gantline.traces.trace import Trace

FOLDER = Path(__file__).parents[3] / "examples" / "learned"
LEARNED = str(FOLDER / "learned.yaml")


@pytest.fixture(scope="module")
def train() -> ModuleType:
    spec = importlib.util.spec_from_file_location("learned_train", FOLDER / "train.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_policy_decides_in_a_run_as_it_did_in_the_environment(train: ModuleType) -> None:
    seed, weights = train.UNSEEN + 5, np.array(load_policy(LEARNED).weights)  # type: ignore[attr-defined]
    trace = Trace.generate("day", seed, **train.WORKLOAD["settings"])
    ours, fifo = (gantline.simulate(trace, train.CLUSTER, policy).summary["average_jct"] for policy in (LEARNED, "fifo"))
    assert train.play(weights, seed) == pytest.approx(-ours / fifo)


def test_it_conforms(one_scenario: None) -> None:
    report = check_policy(load_policy(LEARNED), limit=2.0)
    assert [finding.message for finding in report.findings if finding.result == "FAILED"] == []
    assert report.passed


def test_weights_for_other_features_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "day", "--cluster", "8x8", "--policy", LEARNED, "--set", "weights=1,2"]) == 2
    assert "2 weights for 12 features" in capsys.readouterr().err
