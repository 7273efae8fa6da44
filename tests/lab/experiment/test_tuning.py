"""Tuning: a planted optimum is found, a stop changes nothing, what was held back judges, and mistakes are told before anything runs."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

import gantline
from gantline.cli.main import main
from gantline.core.errors import GantlineError, RefusedError
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.experiment.tuning import tune as tuning
from gantline.lab.experiment.tuning.space import Choices, Range, read_space
from gantline.lab.experiment.tuning.tuned import Tuned, gain_of
from gantline.lab.experiment.tuning.workloads import Laboratory, workloads_of
from gantline.simulator.objective import Objective, parse_objectives
from gantline.traces.files.policies import load_policy

PLANTED = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from gantline import OrderPolicy


@dataclass(frozen=True)
class Planted(OrderPolicy):
    '''Shortest first at a setpoint of 500; the further away, the more chance decides.'''

    needs: ClassVar[frozenset[str]] = frozenset({"remaining"})
    preempt: ClassVar[bool] = False
    setpoint: float = 10.0
    steps: int = 1
    service: str = "time"
    bad: bool = False

    def __post_init__(self):
        if self.setpoint <= 0:
            raise ValueError("a setpoint lies above 0")

    def key(self, snapshot):
        if self.bad:
            raise RuntimeError("planted")
        away = min(1.0, abs(np.log10(self.setpoint / 500.0)) / 2.0)
        chance = np.sin(snapshot.jobs.arrival)
        return (1.0 - away) * np.log(snapshot.jobs.remaining) + 8.0 * away * chance
"""
BUSY = {"jobs": 40, "gpus": 16, "load": 3.0}
BASE = Setting(TraceSource(generator="day", settings=BUSY), "4x4", "fifo")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("planted") / "planted.py"
    file.write_text(PLANTED)
    return str(file)


def tuned(planted: str, folder: Path, *, trials: int = 16, objective: str = "mean-jct", **more: object) -> Tuned:
    space = read_space(planted, more.pop("space", {"setpoint": "5:50000:log"}))  # type: ignore[arg-type]
    bases = more.pop("bases", [BASE])
    return tuning.tune_settings(space, parse_objectives(objective), bases, folder, trials=trials, seeds=range(3), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(planted: str, tmp_path_factory: pytest.TempPathFactory) -> Tuned:
    """A search in one go."""
    return tuned(planted, tmp_path_factory.mktemp("whole") / "t")


def tried(found: Tuned, first: int = 16) -> list[tuple[dict[str, str], tuple[float, ...]]]:
    return [(dict(one.settings), one.scores) for one in found.trials[:first]]


def test_a_planted_optimum_is_found_and_holds_elsewhere(whole: Tuned) -> None:
    assert 250 < float(whole.best.settings["setpoint"]) < 1000
    assert whole.best.scores[0] < 0.95
    gain = whole.gains[0]
    assert gain.held_back.samples == 1
    assert gain.held_back.value < 0
    assert whole.frame.height == 16


def test_the_settings_that_won_are_a_policy_file(whole: Tuned) -> None:
    assert repr(load_policy(str(whole.file))) == repr(whole.policy)
    run = gantline.simulate("day", "8x8", str(whole.file))
    assert run.summary["settings"]["setpoint"] == float(whole.best.settings["setpoint"])


def test_a_search_that_was_stopped_goes_on_as_if_it_had_not_been(
    whole: Tuned, planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches, run = [], Laboratory.try_out

    def stopped_in_the_second_batch(self: Laboratory, settings: list, workloads: list) -> list:
        batches.append(settings)
        if len(batches) == 4:  # the settings as they are, none from earlier, one batch
            raise KeyboardInterrupt
        return run(self, settings, workloads)

    with monkeypatch.context() as patched:
        patched.setattr(Laboratory, "try_out", stopped_in_the_second_batch)
        with pytest.raises(KeyboardInterrupt):
            tuned(planted, tmp_path / "parts", trials=8)
    assert not (tmp_path / "parts" / "best.yaml").exists()
    stamps = {file: file.stat().st_mtime_ns for file in (tmp_path / "parts" / "runs").glob("*.json")}
    again = tuned(planted, tmp_path / "parts", trials=8)
    assert tried(again) == tried(whole, 8)
    assert all(file.stat().st_mtime_ns == stamp for file, stamp in stamps.items()), "nothing is run twice"


def test_workers_change_nothing(whole: Tuned, planted: str, tmp_path: Path) -> None:
    assert tried(tuned(planted, tmp_path / "two", trials=4, workers=2)) == tried(whole, 4)


def test_another_search_is_not_mixed_in(planted: str, tmp_path: Path) -> None:
    tuned(planted, tmp_path / "t", trials=1)
    with pytest.raises(RefusedError, match="holds a search with another objectives"):
        tuned(planted, tmp_path / "t", trials=1, objective="makespan")
    with pytest.raises(RefusedError, match="another searched"):
        tuned(planted, tmp_path / "t", trials=1, space={"setpoint": "5:60:log"})


def test_several_objectives_make_a_front(planted: str, tmp_path: Path) -> None:
    found = tuned(planted, tmp_path / "t", trials=6, objective="mean-jct,worst-rho", space={"setpoint": "5:50000:log", "steps": "1:3"})
    front = found.front
    assert front
    for one in front:
        beaten = [other for other in found.trials if all(a <= b for a, b in zip(other.scores, one.scores)) and other.scores != one.scores]
        assert not beaten
        assert load_policy(str(tmp_path / "t" / "front" / f"{one.number}.yaml")).setpoint == float(one.settings["setpoint"])  # type: ignore[attr-defined]
    assert set(found.front_held_back) == {one.number for one in front}
    assert [chart.name for chart in (found.plot("search"), found.plot("front"), found.plot("steps"))] == ["search", "front", "along-steps"]
    with pytest.raises(GantlineError, match="no figure 'fron'"):
        found.plot("fron")


def test_a_trial_that_crashes_is_reported_and_the_others_go_on(planted: str, tmp_path: Path) -> None:
    found = tuned(planted, tmp_path / "t", trials=3, space={"bad": "false,true"})
    assert found.best.settings == {"bad": "False"} or found.best.settings == {"bad": "false"}
    assert any("decisions were lost" in text for text in found.failures)


def test_a_list_is_searched_number_by_number_and_one_out_of_order_fails_alone(tmp_path: Path) -> None:
    space = {"limits.0": "100:1000", "limits.1": "100:1000", "service": "time"}
    found = tuned("tiresias", tmp_path / "t", trials=5, space=space)
    assert all(one.settings["service"] == "time" and one.settings["limits"].count(",") == 1 for one in found.trials)
    assert len(found.failures) < 5
    for text in found.failures:
        assert "limits" in text


# What is held back.


def test_seeds_of_one_file_stay_on_one_side(tmp_path: Path) -> None:
    bases = []
    for number in range(4):
        file = gantline.Trace.generate("day", number, **BUSY).save(tmp_path / f"{number}.csv")
        bases.append(Setting(TraceSource(file=str(file)), "4x4", "fifo"))
    found = workloads_of(bases, (0, 1), 0.4, 0, tmp_path)
    assert len(found.tuned_on) == len(found.held_back) == 2
    assert all(len(one.settings) == 2 for one in found.tuned_on)
    names = {one.name for one in found.tuned_on} | {one.name for one in found.held_back}
    assert names == {"0.csv", "1.csv", "2.csv", "3.csv"}


def test_of_one_file_the_end_is_held_back(planted: str, tmp_path: Path) -> None:
    file = gantline.Trace.generate("day", 1, jobs=60, gpus=16, load=1.2).save(tmp_path / "jobs.csv")
    found = tuned(planted, tmp_path / "t", trials=2, bases=[Setting(TraceSource(file=str(file)), "4x4", "fifo")])
    early, late = (part[0].settings[0].trace.load(0).frame["arrival"] for part in (found.workloads.tuned_on, found.workloads.held_back))
    assert (early.len(), late.len()) == (36, 24)
    assert early.max() <= late.min()  # type: ignore[operator]
    assert "That decides nothing: an interval needs 3 workloads" in found.sentences[1]


def test_the_same_jobs_twice_would_be_on_both_sides(tmp_path: Path) -> None:
    with pytest.raises(GantlineError, match="are the same jobs"):
        workloads_of([BASE, BASE], (0,), 0.4, 0, tmp_path)


def gained(*held: float) -> str:
    """The sentence about a mean JCT that is, of what it was, so much on each workload that was held back."""
    usual = {str(place): {"mean-jct": 100.0} for place in range(len(held))}
    now = {str(place): {"mean-jct": 100.0 * share} for place, share in enumerate(held)}
    seen = ({"seen": {"mean-jct": 80.0}}, {"seen": {"mean-jct": 100.0}})
    return gain_of(Objective.parse("mean-jct"), seen, (now, usual), 0.95).sentence


def test_the_sentence_says_no_more_than_is_known() -> None:
    clear = gained(0.89, 0.9, 0.91, 0.9)
    assert clear.startswith("On the 4 workloads held back, mean JCT is 10.0 % lower, 95 % interval -11.")
    assert clear.endswith("on the one workload that the search has seen it is 20.0 % lower.")
    assert gained(0.5, 1.4, 0.9, 1.1).endswith("That is no clear gain.")
    assert "do worse where they were not tuned" in gained(1.1, 1.11, 1.09)
    assert "That decides nothing" in gained(0.5, 0.5)
    assert gained().startswith("Nothing was held back")


# What is searched.


def test_ranges_and_choices_as_they_are_written(planted: str) -> None:
    space = read_space(planted, {"setpoint": "1:10:log", "steps": "1:4", "service": "time,gpu-time", "bad": "no"})
    assert space.searched == (
        Range("setpoint", 1.0, 10.0, log=True),
        Range("steps", 1.0, 4.0, whole=True),
        Choices("service", ("time", "gpu-time")),
    )
    assert space.fixed == {"bad": "no"}
    assert read_space(planted, {"setpoint": (1, 10, "log"), "steps": (1, 4), "service": ["time", "gpu-time"], "bad": "no"}) == space
    assert read_space("tiresias", {"limits": "60;60,600"}).searched == (Choices("limits", ("60", "60,600")),)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"setpoint": "10:10"}, "the range '10:10' is empty"),
        ({"setpoint": "20:10"}, "the range '20:10' is empty"),
        ({"setpoint": "nan:10"}, "is empty"),
        ({"setpoint": "a:10"}, "'a:10' is not a range of numbers"),
        ({"setpoint": "1:10:lin"}, "'lin' is not 'log'"),
        ({"setpoint": "0:10:log"}, "a logarithmic range begins above 0"),
        ({"setpoint": "-1:10"}, "the policy refuses setpoint=-1.0"),
        ({"setpoint": "1,x"}, "the policy refuses setpoint=x"),
        ({"setpoint": "1,"}, "has a value that is empty"),
        ({"steps": "1.5:3"}, "'1.5:3' is not a range of whole numbers"),
        ({"service": "1:3"}, "'1:3' is a range, and 'service' is a str"),
        ({"service": "time,time"}, "names 'time' twice"),
        ({"bad": "0:1"}, "'bad' is a bool"),
        ({"setpiont": "1:10"}, "has no parameter 'setpiont' (did you mean 'setpoint'"),
        ({"steps.0": "1:3"}, "names no number of a list"),
        ({"steps": "2"}, "there is nothing to search"),
        ({}, "there is nothing to search"),
    ],
)
def test_a_space_that_cannot_be_searched_is_refused(planted: str, given: dict[str, str], told: str) -> None:
    with pytest.raises(GantlineError) as caught:
        read_space(planted, given)
    assert told in str(caught.value)
    assert str(caught.value).startswith("--set")


# The command and the function.


def test_the_command_ends_with_a_table_a_sentence_a_figure_and_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("planted.py").write_text(PLANTED)
    words = ["--trace", "day", *(word for key, value in BUSY.items() for word in ("--trace-set", f"{key}={value}")), "--cluster", "4x4"]
    asked = ["tune", "planted.py", *words, "--set", "setpoint=5:50000:log", "--trials", "2", "--seeds", "2", "--workers", "1"]
    assert main(asked) == 0
    told = capsys.readouterr()
    assert "trial\tsetpoint\tscore\tmean-jct" in told.out
    assert "workload held back" in told.out
    assert "tuning/best.yaml, for --policy" in told.err
    assert (tmp_path / "tuning" / "figures" / "search.png").is_file()
    assert pl.read_parquet(tmp_path / "tuning" / "trials.parquet").height == 2
    assert main(["simulate", "day", "--cluster", "8x8", "--policy", "tuning/best.yaml"]) == 0
    assert main([*asked, "-o", "json"]) == 0
    assert '"held_back"' in capsys.readouterr().out
    same = gantline.tune("planted.py", {"generate": "day", "settings": BUSY}, "4x4", {"setpoint": (5, 50000, "log")}, trials=2, seeds=2)
    assert [one.scores for one in same.trials] == pl.read_parquet(tmp_path / "tuning" / "trials.parquet").select("score").rows()


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--objective", "deadlines", "--set", "setpoint=1:10"], 4, "'deadlines' cannot be answered: no job has a deadline"),
        (["--objective", "dollars", "--set", "setpoint=1:10"], 4, "the devices have no prices"),
        (["--objective", "fast", "--set", "setpoint=1:10"], 2, "--objective: no objective 'fast'"),
        (["--set", "setpoint=10:1"], 2, "--set setpoint: the range '10:1' is empty"),
        (["--set", "setpoint=1:10", "--trials", "0"], 2, "--trials: 0 trials find nothing"),
        (["--set", "setpoint=1:10", "--hold-back", "1.5"], 2, "--hold-back: 1.5 is not a share below 1"),
        (["--set", "setpoint=1:10", "--warmup", "auto"], 2, "--warmup auto: every trial would count other jobs"),
    ],
)
def test_a_mistake_is_one_line_before_the_search(
    planted: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, told: str
) -> None:
    asked = ["tune", planted, "--trace", "day", "--trace-set", "jobs=20", "--cluster", "8x8", "--seeds", "2", "--workers", "1"]
    assert main([*asked, "--out", str(tmp_path / "t"), *words]) == code
    assert told in capsys.readouterr().err


def test_without_optuna_it_says_what_to_install(planted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(GantlineError, match=r"pip install 'gantline\[tune\]'"):
        tuned(planted, tmp_path / "t", trials=1)
    assert not (tmp_path / "t").exists()
