"""Grids: every combination once, with names that tell the runs apart; mistakes are refused before anything runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gantline.core.errors import GantlineError, UsageError
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource

BASE = Setting(TraceSource(generator="day", settings={"jobs": 60, "gpus": 16}), "4x4", "fifo")


def test_all_axes_are_crossed() -> None:
    grid = Grid(BASE, (PolicyChoice("fifo"), PolicyChoice("las")), loads=(0.5, 0.7), seeds=(1, 2, 3), vary={"round": [60, 300]})
    cases = grid.cases()
    assert len(cases) == len({case.hash for case in cases}) == 24
    assert cases[0].name == "fifo load=0.5 round=60 seed=1"
    assert cases[0].axes == {"load": 0.5, "round": 60, "seed": 1}
    assert cases[0].setting.trace.settings["load"] == 0.5


def test_runs_with_the_same_jobs_are_neighbours() -> None:
    cases = Grid(BASE, (PolicyChoice("fifo"), PolicyChoice("las")), seeds=(1, 2)).cases()
    assert [case.setting.seed for case in cases] == [1, 1, 2, 2]


def test_a_parameter_of_one_policy_leaves_the_others_alone() -> None:
    policies = (PolicyChoice("fifo"), PolicyChoice("tiresias", name="2d-las"))
    cases = Grid(BASE, policies, vary={"2d-las.limits": [[3600], [3600, 7200]]}).cases()
    assert [case.policy for case in cases] == ["fifo", "2d-las limits=3600", "2d-las limits=3600,7200"]
    assert [dict(case.parameters) for case in cases] == [{}, {"2d-las.limits": "3600"}, {"2d-las.limits": "3600,7200"}]


def test_a_policy_may_stand_twice_with_other_parameters() -> None:
    policies = (PolicyChoice("las"), PolicyChoice("las", {"service": "gpu-time"}))
    assert [case.policy for case in Grid(BASE, policies).cases()] == ["las", "las service=gpu-time"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"policies": ()}, "policies: names no policy"),
        ({"policies": (PolicyChoice("fifo"), PolicyChoice("fifo"))}, "policies: names fifo twice"),
        ({"seeds": (1, 1)}, "seeds: names 1 twice"),
        ({"vary": {"round": []}}, "round: has no values"),
    ],
)
def test_empty_and_double_axes_are_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Grid(**({"base": BASE, "policies": (PolicyChoice("fifo"),)} | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        ({"round": ["60", "1m"]}, "vary: round: '60' and '1m' mean the same"),
        ({"round": ["5m", "1m", "300"]}, "vary: round: '5m' and '300' mean the same"),
        ({"las.limits": ["3600,7200", "3600.0,7200"]}, "vary: las.limits: '3600,7200' and '3600.0,7200' mean the same"),
    ],
)
def test_values_that_mean_the_same_are_refused(vary: dict[str, list[str]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Grid(BASE, (PolicyChoice("fifo"), PolicyChoice("tiresias", name="las")), seeds=(0, 1), vary=vary).cases()


def test_policies_that_mean_the_same_may_stand_beside_each_other() -> None:
    """Such as a policy and the one that a search has found, which is the same in the end."""
    policies = (PolicyChoice("las"), PolicyChoice("las", {"service": "time"}, name="found"))
    assert len(Grid(BASE, policies, vary={"round": ["1m", "5m"], "found.service": ["time"]}).cases()) == 4


@pytest.mark.parametrize(
    ("policy", "vary", "message"),
    [
        ("fifo", {"rund": [1]}, "did you mean 'round'"),
        ("fifo", {"fif.backfill": ["easy"]}, "'fif' is none of the policies"),
        ("fifo", {"fifo.backfil": ["easy"]}, "did you mean 'backfill'"),
        ("fifo", {"cluster": ["4x4", "4y4"]}, "'4y4' is not a group of nodes"),
        ("srft", {}, "did you mean 'srtf'"),
    ],
)
def test_a_typo_anywhere_is_refused_before_anything_runs(policy: str, vary: dict[str, list[object]], message: str) -> None:
    with pytest.raises(GantlineError, match=message):
        Grid(BASE, (PolicyChoice(policy),), vary=vary).cases()


def test_what_would_be_ignored_beside_an_axis_is_refused() -> None:
    fifo = (PolicyChoice("fifo"),)
    with pytest.raises(UsageError, match=r"vary: seed: 'seed' is an axis of its own \(give its values by --seeds\)"):
        Grid(BASE, fifo, vary={"seed": [1, 2]})
    with pytest.raises(UsageError, match="vary: load: 'load' is an axis of its own"):
        Grid(BASE, fifo, loads=(0.5,), vary={"load": [1, 2]})
    with pytest.raises(UsageError, match=r"vary: round: 'round' is varied, so that 30\.0 would be ignored \(leave one of them out\)"):
        Grid(replace(BASE, round=30.0), fifo, vary={"round": [60, 300]}).refuse_values_beside_axes()
    Grid(BASE, fifo, vary={"round": [60, 300], "cluster": ["4x4", "8x4"]}).refuse_values_beside_axes()
