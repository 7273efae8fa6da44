"""A setting says everything about a run: equal settings have equal hashes and give equal runs."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UsageError
from gantline.lab.experiment.setting import Setting, run_setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.systems.gavel.generator import TEMPLATES, throughput_key

DAY = TraceSource(generator="day", settings={"jobs": 60})
JOBS = "job,arrival,gpus,duration\na,0,1,100\nb,10,2,50\nc,20,1,30\n"


def setting(**changes: object) -> Setting:
    return Setting(**({"trace": DAY, "cluster": "4x4", "policy": "srtf"} | changes))  # type: ignore[arg-type]


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    file = tmp_path / "jobs.csv"
    file.write_text(JOBS, encoding="utf-8")
    return file


@given(
    policy=st.sampled_from(["fifo", "srtf", "las"]),
    round=st.none() | st.floats(0.001, 1e5),
    seed=st.integers(0, 2**40),
    track=st.none() | st.tuples(st.integers(0, 9), st.integers(10, 99)),
    until=st.floats(1, 1e9) | st.just(math.inf),
    scale=st.floats(0.1, 10),
)
def test_a_setting_survives_the_way_through_a_mapping(policy, round, seed, track, until, scale) -> None:
    source = TraceSource(generator="blox", settings={"jobs": 3}, seed=1, scale=scale)
    one = setting(trace=source, policy=policy, round=round, seed=seed, track=track, until=until)
    again = Setting.read(one.to_dict())
    assert again == one
    assert again.hash == one.hash


def test_the_hash_sees_meaning_not_spelling() -> None:
    assert setting(round=300).hash == setting(round=300.0).hash
    assert setting(policy="las").hash == setting(policy="las", settings={"service": "time"}).hash
    given_as_text = setting(policy="tiresias", settings={"limits": "3600,7200"})
    assert given_as_text.hash == setting(policy="tiresias", settings={"limits": [3600.0, 7200]}).hash


def test_results_of_the_past_are_found_again() -> None:
    """A new option changes no hash of runs that do not use it; where the meaning of a field changes, SCHEMA is raised and so are these."""
    assert setting().hash == "75c69f2f6a9ce03b2d6b0fa645b4d9449b736675184196f2ed7e06e6555341e2"
    many = {"placement": "consolidated", "admission": "load-limit:2", "regime": "blox", "estimates": "noisy:0.3", "costs": "30"}
    times = {"min_run": 5.0, "latency": 2.0, "until": 5000.0}
    one = setting(**many, **times, seed=7, track=(1, 20), across_nodes=True, prices="v100=3")
    assert one.hash == "813a3ebaeb55f4608e7dfddc5c7515ccc0a55845ee0d5aa26fc7a6d05d48b965"


@pytest.mark.parametrize(
    "change",
    [
        {"policy": "las"},
        {"seed": 1},
        {"round": 60.0},
        {"cluster": "2x8"},
        {"track": (0, 9)},
        {"estimates": "noisy:0.3"},
        {"placement": "consolidated"},
        {"trace": TraceSource(generator="day", settings={"jobs": 61})},
        {"trace": TraceSource(generator="day", settings={"jobs": 60}, scale=2.0)},
    ],
)
def test_the_hash_sees_every_difference(change: dict[str, object]) -> None:
    assert setting(**change).hash != setting().hash


def test_the_hash_of_a_file_is_that_of_its_content(jobs: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "copy.csv"
    elsewhere.write_text(JOBS, encoding="utf-8")
    one, two = (setting(trace=TraceSource(file=str(file))) for file in (jobs, elsewhere))
    assert one.hash == two.hash
    elsewhere.write_text(JOBS.replace("30", "31"), encoding="utf-8")
    assert one.hash != two.hash


def test_a_file_that_changed_under_a_pinned_setting_is_refused(jobs: Path) -> None:
    pinned = setting(trace=TraceSource(file=str(jobs))).pinned()
    run_setting(pinned)
    jobs.write_text(JOBS.replace("30", "31"), encoding="utf-8")
    with pytest.raises(RefusedError, match="the file of the trace has changed"):
        run_setting(pinned)


def test_equal_settings_give_equal_runs_and_the_summary_tells_them() -> None:
    one, two = run_setting(setting()), run_setting(Setting.read(setting().to_dict()))
    assert one.summary["log_hash"] == two.summary["log_hash"]
    assert one.summary["setting_hash"] == setting().hash
    assert Setting.read(one.summary["setting"]) == setting()


def test_the_seed_of_the_run_draws_the_jobs_unless_the_generator_has_its_own() -> None:
    assert run_setting(setting(seed=1)).summary["trace_hash"] != run_setting(setting(seed=2)).summary["trace_hash"]
    fixed = TraceSource(generator="day", settings={"jobs": 60}, seed=7)
    hashes = {run_setting(setting(trace=fixed, seed=seed)).summary["trace_hash"] for seed in (1, 2)}
    assert len(hashes) == 1


def test_a_load_means_a_factor_for_files_and_the_load_for_generators(jobs: Path) -> None:
    from_file = setting(trace=TraceSource(file=str(jobs))).with_value("load", 2)
    assert run_setting(from_file).jobs["arrival"].to_list() == [0.0, 5.0, 10.0]
    assert setting().with_value("load", "0.5").trace.settings == {"jobs": 60, "load": 0.5}


def test_any_field_can_be_varied() -> None:
    assert setting().with_value("round", "5m").round == 300.0
    assert setting().with_value("trace.jobs", 10).trace.settings["jobs"] == 10
    assert setting().with_value("trace.seed", 3).trace.seed == 3
    assert setting(policy="las").with_value("policy.service", "gpu-time").settings == {"service": "gpu-time"}
    with pytest.raises(UsageError, match=r"'plcement' can be varied \(did you mean 'placement'"):
        setting().with_value("plcement", "random")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trace": "day", "cluster": "4x4", "polcy": "fifo"}, r"unknown field 'polcy' \(did you mean 'policy'"),
        ({"trace": "day", "cluster": "4x4"}, "lacks 'policy'"),
        ({"trace": {"generate": "phily"}, "cluster": "4x4", "policy": "fifo"}, "did you mean 'philly'"),
        ({"trace": {"file": "a.csv", "seed": 1}, "cluster": "4x4", "policy": "fifo"}, "trace: unknown key 'seed'"),
        ({"trace": {"settings": {}}, "cluster": "4x4", "policy": "fifo"}, "trace: unknown key 'settings'"),
        ({"trace": "day", "cluster": "4x4", "policy": "fifo", "round": "soon"}, "round: 'soon' is not a time"),
        ({"trace": "day", "cluster": "4x4", "policy": "fifo", "seed": 1.5}, "seed: 1.5 is not a whole number"),
        ({"trace": "day", "cluster": "4x4", "policy": "fifo", "track": "3"}, "track: '3' is not a range of jobs"),
        ({"trace": {"generate": "day", "scale": 0}, "cluster": "4x4", "policy": "fifo"}, "scale 0 is not above 0"),
    ],
)
def test_a_mistake_names_its_field(given: dict[str, object], message: str) -> None:
    with pytest.raises(GantlineError, match=message):
        Setting.read(given)


def test_names_are_checked_before_anything_runs() -> None:
    for wrong in ({"policy": "srft"}, {"placement": "tight"}, {"regime": "blocks"}, {"cluster": "4y4"}, {"costs": "strat=3"}):
        with pytest.raises((UsageError, NotFoundError)):
            setting(**wrong).check()


def test_measured_speeds_and_prices_belong_to_a_run(tmp_path: Path) -> None:
    """A run by a table of speeds: the generator of steps reads the same table, and its content is part of the hash."""
    speeds, prices = tmp_path / "speeds.json", tmp_path / "prices.csv"
    row = {throughput_key(template.name, 1): {"null": 2.0} for template in TEMPLATES}
    speeds.write_text(json.dumps({"v100": row}), encoding="utf-8")
    prices.write_text("v100,3.0\n", encoding="utf-8")
    source = TraceSource(generator="gavel", settings={"jobs": 4, "duration": 3600.0, "mean_gap": 0.0})
    one = setting(trace=source, cluster="v100:4", policy="gavel.isolated", regime="gavel", throughputs=str(speeds), prices=str(prices))
    run = run_setting(one)
    assert run.summary["average_jct"] == pytest.approx(3600.0)
    assert run.summary["cost"] == pytest.approx(4 * 3.0)
    assert Setting.read(one.to_dict()) == one
    before = one.hash
    speeds.write_text(json.dumps({"v100": {key: {"null": 4.0} for key in row}}), encoding="utf-8")
    assert one.hash != before
