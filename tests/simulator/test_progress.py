"""Whoever watches a run sees it move: every regime reports the time, the jobs that have arrived and those inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.records.record import line_of, read_record
from tests.records.runs import Recorded, recorded_runs
from tests.records.worlds import make_worlds

from gantline.engine.regime import regime_names
from gantline.simulator.run import Run

#: regimes with several loops: a policy of each
LOOPS = {
    "elasticflow": ("elasticflow", "edf", "tiresias", "gandiva", "themis"),
    "irfsim": ("allox", "drf", "allox.sjf"),
    "shockwave": ("shockwave", "gavel.max_min_fairness"),
}
COMPILED = ("blox", "tiresias")  # loops that come back to report after some thousand decisions, and at the end


def watched() -> list[Recorded]:
    """A run of every loop that there is."""
    runs = {(run.regime, run.policy): run for run in recorded_runs()}
    first = {regime: next(policy for its, policy in runs if its == regime) for regime in regime_names()}
    return [runs[regime, policy] for regime in regime_names() for policy in LOOPS.get(regime, (first[regime],))]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., Run]]:
    return make_worlds(tmp_path_factory.mktemp("worlds"))


@pytest.mark.parametrize("run", watched(), ids=lambda run: f"{run.regime} {run.policy}")
def test_progress_moves_in_every_loop(run: Recorded, worlds: dict[str, Callable[..., Run]]) -> None:
    reports: list[tuple[float, int, int]] = []
    options: dict[str, Any] = {"on_progress": lambda *report: reports.append(report)}
    found = worlds[run.world](run.policy, run.settings, **run.options, **options)
    times, arrived, inside = zip(*reports)
    ended = [came - here for came, here in zip(arrived, inside)]
    assert list(times) == sorted(times)
    assert all(0 <= count <= found.summary["jobs"] for count in ended)
    if run.regime not in COMPILED:
        assert len(set(ended)) > 2, "the bar stands still"
    assert line_of(run.name, found) in read_record(run.system)[0].lines, "reports change the run"
