"""Regime synergy: Synergy's simulator job by job, by hand on one small server and against its published runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.jobs import job_row
from tests.simulator.references import one_in, reference

from gantline.core.errors import GantlineError
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.systems.synergy.traces import read_profiles
from gantline.traces.importers import import_trace

PROFILES = Path(__file__).parents[3] / "examples" / "sensitivity"
#: order, mechanism and trace; mean, median and largest JCT, end of the run in hours
PUBLISHED = [
    ("drf tune", "dynamic", 14253.26, 12674.0, 37397.0, 12.5),
    ("fifo greedy", "dynamic", 13974.26, 12550.0, 42861.0, 15.25),
    ("fifo fair", "dynamic", 16641.26, 14996.0, 52697.0, 16.75),
    ("fifo tune", "dynamic", 13230.26, 11439.0, 41361.0, 14.8333),
    ("ftf fair", "dynamic", 22668.26, 25341.0, 46997.0, 15.1667),
    ("ftf tune", "dynamic", 17748.26, 19623.0, 32341.0, 11.5),
    ("las greedy", "dynamic", 14592.26, 13114.0, 40817.0, 12.25),
    ("las fair", "dynamic", 16398.26, 12632.0, 54197.0, 17.1667),
    ("las tune", "dynamic", 13212.26, 10855.0, 37817.0, 11.4167),
    ("srtf greedy", "dynamic", 11637.26, 6616.0, 44623.0, 13.9167),
    ("srtf fair", "dynamic", 14064.26, 7675.0, 62597.0, 19.5),
    ("srtf tune", "dynamic", 11478.26, 6757.0, 41623.0, 13.25),
    ("srtf tune consolidated", "dynamic", 11478.26, 6757.0, 41623.0, 13.25),
    ("tetris tune", "dynamic", 11217.26, 6648.0, 36523.0, 12.3333),
    ("fifo greedy", "static", 19779.9505, 21600.933, 44400.913, 12.3336),
    ("fifo fair", "static", 20271.9505, 21300.933, 54900.901, 15.2503),
    ("fifo tune", "static", 18297.9505, 18900.965, 39600.913, 11.0003),
    ("ftf fair", "static", 28737.9505, 31200.915, 35100.994, 9.7503),
    ("ftf tune", "static", 27999.9505, 30000.992, 33900.996, 9.4169),
    ("las fair", "static", 20250.9505, 18000.992, 41100.934, 11.4169),
    ("las tune", "static", 18615.9505, 16800.92, 38400.968, 10.6669),
    ("srtf fair", "static", 15882.9505, 10800.915, 50700.934, 14.0836),
    ("srtf tune", "static", 14784.9505, 10200.949, 46500.968, 12.9169),
]


def replay(*rows: tuple[str, int, float], cluster: str = "1x4/12c/250g", **settings: Any) -> Run:
    """Jobs that all come at the start: (network, gpus, seconds at the proportional share)."""
    jobs = [job_row(str(k), gpus, length, model=name) for k, (name, gpus, length) in enumerate(rows)]
    return simulate(pl.DataFrame(jobs), cluster, "synergy", settings=settings, regime="synergy", profiles=str(PROFILES))


def ends(run: Run) -> list[float]:
    return run.jobs["finish"].to_list()


def test_a_job_alone_is_as_fast_as_its_best_cpus_make_it_and_its_end_is_seen_at_the_end_of_a_round() -> None:
    # 6,600 s at three CPUs; 3,000 s at the nine that it can use
    assert ends(replay(("vision", 1, 6600.0), mechanism="tune")) == [3000.0]
    assert ends(replay(("vision", 1, 6600.0), mechanism="fair")) == [6600.0]
    assert ends(replay(("vision", 1, 6601.0), mechanism="fair")) == [6900.0]


def test_greedy_lets_a_gpu_idle_where_its_cpus_are_gone() -> None:
    two = [("vision", 1, 6600.0)] * 2  # eighteen CPUs of twelve

    assert ends(replay(*two, order="fifo", mechanism="greedy")) == [3000.0, 6000.0]
    # the second has its three CPUs beside the nine of the first for 3,000 s, then nine
    assert ends(replay(*two, order="fifo", mechanism="tune")) == [3000.0, 4800.0]


def test_tune_shrinks_a_job_to_its_share_for_one_that_comes_later_in_the_order() -> None:
    run = replay(("vision", 1, 6600.0), ("vision", 1, 6600.0), ("text", 1, 300.0), order="fifo", mechanism="tune")

    # in the first round nine, three and one CPU are one too many: the first job is shrunk, and does 300 s of its work
    assert ends(run)[2] == 300.0
    assert ends(run)[0] == 3300.0
    assert run.reported.select("partners", "rate_changes", "nodes").rows() == [("", 1, "node0"), ("", 1, "node0"), ("", 0, "node0")]


def test_a_job_of_several_gpus_is_cut_to_one_server_and_gains_in_proportion() -> None:
    # 36 CPUs are cut to twelve, the proportional share of four GPUs: no gain; two GPUs keep half of the gain: 1 + 1.2 (12 - 6)/(18 - 6)
    assert ends(replay(("vision", 4, 3000.0), mechanism="tune")) == [3000.0]
    assert ends(replay(("vision", 2, 4800.0), mechanism="tune")) == [3000.0]


def test_consolidated_keeps_a_gang_on_the_fullest_server_that_holds_it() -> None:
    rows = [("text", 3, 3000.0), ("text", 2, 3000.0)]
    spread = replay(*rows, cluster="2x4/12c/250g", order="fifo", mechanism="fair")
    together = replay(*rows, cluster="2x4/12c/250g", order="fifo", mechanism="fair", place="consolidated")

    assert [len(nodes) for nodes in spread.allocations["nodes"].to_list()] == [1, 2]
    assert [len(nodes) for nodes in together.allocations["nodes"].to_list()] == [1, 1]


def test_the_run_stops_at_the_first_round_without_jobs_and_says_how_many_were_left() -> None:
    jobs = [job_row(str(k), 1, 300.0, at=9000.0 * k, model="text") for k in range(2)]
    run = simulate(jobs, "1x4/12c/250g", "synergy", regime="synergy", profiles=str(PROFILES))

    assert (run.summary["left_behind_a_gap"], run.summary["end_of_run"]) == (1, 300.0)
    assert run.jobs["state"].to_list() == ["completed", "waiting"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"profiles": ""}, "no profiles are given"),
        ({"profiles": "absent"}, "no such folder"),
        ({"settings": {"order": "las", "mechanism": "opt"}}, "fails with this order"),
        ({"cluster": "1x4/16c/250g"}, "no profiles of servers with 4 CPUs per GPU"),
        ({"cluster": "1x4/12c/250g,1x8/24c/500g"}, "one kind of server"),
        ({"model": "vsion"}, "no profile of 'vsion' .did you mean 'vision'"),
        ({"gpus": 5}, "asks for 5"),
        ({"costs": "30"}, "--costs"),
    ],
)
def test_what_the_original_has_nothing_like_is_refused(change: dict[str, Any], what: str) -> None:
    given = {"cluster": "1x4/12c/250g", "policy": "synergy", "profiles": str(PROFILES), "regime": "synergy", "model": "text", "gpus": 1}
    options = given | change
    jobs = [job_row("a", options.pop("gpus"), 300.0, model=options.pop("model"))]

    with pytest.raises(GantlineError, match=what):
        simulate(jobs, options.pop("cluster"), options.pop("policy"), **options)


@pytest.mark.parametrize(
    ("file", "line", "what"),
    [
        ("throughput_matrix.csv", "models,1,vision,1,20,0.7", "'vision' has two speeds with 1 CPUs and 20 GB"),
        ("throughput_matrix.csv", "models,1,vision,5,20,0.7", "no full grid"),
        ("throughput_matrix.csv", "models,1,vision,5,20,0", "0 is not above zero"),
        ("model_profiles.csv", "models,1,text,1,20,1,1,1,1,0.1", "'text' has two rows in set 'models'"),
        ("model_profiles.csv", "models,1,other,1,20,1,1,1,1,0.1", "no full grid: 0"),
        ("model_profiles.csv", "models,1,other,many,20,1,1,1,1,0.1", "'many' is not a number"),
    ],
)
def test_profiles_that_contradict_themselves_are_refused_with_their_line(tmp_path: Path, file: str, line: str, what: str) -> None:
    for source in PROFILES.glob("*.csv"):
        (tmp_path / source.name).write_text(source.read_text() + (line + "\n" if source.name == file else ""))

    with pytest.raises(GantlineError, match=what):
        read_profiles(tmp_path)


def test_a_replay_file_with_a_job_of_no_iterations_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "replay.csv").write_text("0,vision,0,100,1\n1,vision,5,0,1\n")

    with pytest.raises(GantlineError, match=r"replay.csv:2: field 'iterations': the job has 0 iterations"):
        import_trace("synergy", tmp_path / "replay.csv", {"profiles": PROFILES})


# --- published ---------------------------------------------------------------------------------------------------------


def published(name: str, words: str) -> Run:
    folder = reference("synergy")
    jobs = import_trace("synergy", folder / f"{name}_100job.csv", {"profiles": folder})
    settings = dict(zip(("order", "mechanism", "place"), words.split())) | ({"mode": "static"} if name == "static" else {})
    return simulate(jobs, "4x8", "synergy", settings=settings, regime="synergy", round=300, profiles=str(folder))


@pytest.mark.parametrize(("words", "trace", "mean", "median", "largest", "hours"), one_in(3, PUBLISHED))
def test_published_runs_are_equal(words: str, trace: str, mean: float, median: float, largest: float, hours: float) -> None:
    run = published(trace, words)
    times = sorted((run.jobs["finish"] - run.jobs["arrival"]).round(3).to_list())

    # the original's median of an even number is the greater of the two in the middle
    assert (len(times), round(sum(times) / 100, 4), times[50], times[-1]) == (100, mean, median, largest)
    assert run.summary["end_of_run"] / 3600 == pytest.approx(hours, abs=5e-5)


@pytest.mark.parametrize(("order", "mean", "hours"), one_in(2, [("fifo", 12237.26, 14.0), ("srtf", 11151.26, 12.9167)]))
def test_published_runs_by_integer_programs_are_near(order: str, mean: float, hours: float) -> None:
    run = published("dynamic", f"{order} opt")

    assert run.summary["average_jct"] == pytest.approx(mean, rel=0.01)
    assert run.summary["end_of_run"] == pytest.approx(3600 * hours, abs=600)
