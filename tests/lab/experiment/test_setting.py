"""A setting says everything about a run: equal settings have equal hashes and give equal runs."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import GantlineError, NotFoundError, RefusedError, TraceError, UsageError
from gantline.lab.experiment.digest import DECIDING
from gantline.lab.experiment.experiment import Experiment, read_experiment, write_experiment
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.setting import Setting, run_setting
from gantline.lab.experiment.sweep import run_sweep
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


# Tables that a setting names: node events, measured throughputs, prices. They count by content and move with the file that names them.

SPEEDS = {kind: {"('lm', 1)": {"null": speed}} for kind, speed in (("fast", 4.0), ("slow", 1.0))}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "\n".join(f"{name},0,1,100,\"('lm', 1)\",400" for name in "ab")
    (tmp_path / "jobs.csv").write_text(f"job,arrival,gpus,duration,throughput_key,work\n{rows}\n")
    (tmp_path / "speeds.json").write_text(json.dumps(SPEEDS))
    (tmp_path / "nodes.csv").write_text("time,node,event\n50,node1,down\n")
    (tmp_path / "prices.csv").write_text("fast,3.6\nslow,1.8\n")
    return tmp_path


def setting_in(folder: Path, **changes: object) -> Setting:
    base = {"trace": TraceSource(file=str(folder / "jobs.csv")), "cluster": "fast:1x1,slow:1x1", "policy": "fifo"}
    return Setting(**(base | changes))  # type: ignore[arg-type]


def test_measured_speeds_decide_how_long_jobs_run(folder: Path) -> None:
    run = run_setting(setting_in(folder, throughputs=str(folder / "speeds.json")))
    assert sorted(run.jobs["jct"].to_list()) == [100.0, 400.0]


def test_a_node_that_fails_during_the_run(folder: Path) -> None:
    run = run_setting(setting_in(folder, node_events=str(folder / "nodes.csv")))
    assert "node-lost" in run.allocations["reason"]
    assert run.summary["down_gpus"] == [(50.0, 1)]


def test_prices_become_the_cost_in_the_results(folder: Path) -> None:
    for prices in ("fast=3.6,slow=1.8", str(folder / "prices.csv")):
        one = setting_in(folder, prices=prices)
        cases = Grid(one, (PolicyChoice("fifo"),)).cases()
        results = run_sweep(cases, folder / f"sweep-{len(prices)}").results
        assert results["money"].to_list() == [pytest.approx(100 / 3600 * (3.6 + 1.8))]


@pytest.mark.parametrize("field", ["throughputs", "node_events", "prices"])
def test_the_content_counts_and_a_change_is_noticed(folder: Path, field: str) -> None:
    file = folder / {"throughputs": "speeds.json", "node_events": "nodes.csv", "prices": "prices.csv"}[field]
    copy = folder / f"copy{file.suffix}"
    copy.write_text(file.read_text())
    one, two = (setting_in(folder, **{field: str(path)}) for path in (file, copy))
    assert one.hash == two.hash != setting_in(folder).hash
    pinned = two.pinned()
    copy.write_text(file.read_text() + "\n")
    assert one.hash != setting_in(folder, **{field: str(copy)}).hash
    with pytest.raises(RefusedError, match=f"the file of the {field} has changed"):
        run_setting(pinned)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"throughputs": "nowhere.json"}, NotFoundError, "no such file"),
        ({"node_events": "nowhere.csv"}, NotFoundError, "no such file"),
        ({"prices": "v100"}, NotFoundError, "no such file"),
        ({"prices": "v100=cheap"}, UsageError, "'cheap' is not a number"),
        ({"cluster": "4x1"}, TraceError, "no node 'node9'"),
    ],
)
def test_a_wrong_table_is_refused_before_anything_runs(folder: Path, change: dict[str, str], error: type, message: str) -> None:
    (folder / "odd.csv").write_text("time,node,event\n50,node9,down\n")
    given = {"node_events": str(folder / "odd.csv")} if "cluster" in change else {}
    with pytest.raises(error, match=message):
        setting_in(folder, **given, **change).check()


def test_an_experiment_file_finds_its_tables_from_its_own_folder(folder: Path) -> None:
    base = setting_in(folder, throughputs=str(folder / "speeds.json"), node_events=str(folder / "nodes.csv"), across_nodes=True)
    (folder / "deep").mkdir()
    path = write_experiment(Experiment(Grid(base, (PolicyChoice("fifo"),))), folder / "deep" / "experiment.yaml")
    assert "throughputs: ../speeds.json" in path.read_text()
    again = read_experiment(path).grid
    assert [case.hash for case in again.cases()] == [case.hash for case in Grid(base, (PolicyChoice("fifo"),)).cases()]


def test_options_of_a_foreign_format_that_are_files_move_too(folder: Path) -> None:
    (folder / "old.trace").write_text("lm\tcmd\t.\t-s\t0\t400\t1\t1\t-1\t0\n")
    source = TraceSource(
        file=str(folder / "old.trace"), format="gavel", settings={"throughputs": str(folder / "speeds.json"), "device": "fast"}
    )
    base = setting_in(folder, trace=source)
    (folder / "deep").mkdir()
    path = write_experiment(Experiment(Grid(base, (PolicyChoice("fifo"),))), folder / "deep" / "experiment.yaml")
    read = read_experiment(path).grid.base
    assert Path(read.trace.settings["throughputs"]).samefile(folder / "speeds.json")
    assert run_setting(read).jobs["jct"].to_list() == [100.0]


def test_a_mistake_in_a_table_points_at_the_line_of_the_experiment(folder: Path) -> None:
    path = folder / "experiment.yaml"
    path.write_text("version: 1\ntrace: jobs.csv\ncluster: fast:1x1,slow:1x1\npolicies: [fifo]\nthroughputs: sped.json\n")
    with pytest.raises(NotFoundError, match=r"experiment\.yaml:5.*no such file"):
        read_experiment(path)
    path.write_text("version: 1\ntrace: jobs.csv\ncluster: 2x1\npolicies: [fifo]\nacross_nodes: maybe\n")
    with pytest.raises(UsageError, match=r"experiment\.yaml:5.*neither true nor false"):
        read_experiment(path)


# Stored results are those of the program that made them: every room that takes part in a run counts.

_RUN = """
import sys
from gantline import simulate
simulate([{"job": "a", "arrival": 0, "gpus": 1, "duration": 5}], "1x1", "srtf")
print(*{name.split(".")[1] for name in sys.modules if name.startswith("gantline.")})
"""
_ONLY_SPEED = {"_alarm"}


def test_every_room_that_a_run_goes_through_is_part_of_the_program() -> None:
    rooms = set(subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=True).stdout.split())
    assert "simulator" in rooms
    assert rooms - _ONLY_SPEED <= {room.split("/")[0].removesuffix(".py") for room in DECIDING}


# Grids: every combination once, with names that tell the runs apart; mistakes are refused before anything runs.

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
