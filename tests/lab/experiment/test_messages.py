"""Numbers that would mislead say so: runs in doubt never win, seeds that change nothing give no interval, free stops are told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401
from tests.typed import typed

from gantline import fill, simulate
from gantline.cli.simulate import LostTurnWords
from gantline.core.errors import GantlineError, UsageError
from gantline.core.facts import Costs
from gantline.engine.policy_failures import Incident
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.saturation import Saturation, find_saturation
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.trace_source import TraceSource
from gantline.lab.report.run_warnings import MARK, free_stops, no_contest

BROKEN = """\
from dataclasses import dataclass
from gantline import Plan, Policy

@dataclass(frozen=True)
class Lucky(Policy):
    def decide(self, snapshot):
        if len(snapshot.jobs) > 2:
            raise ValueError("too much")
        return Plan.rank(snapshot.jobs.arrival)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lucky.py").write_text(BROKEN)
    rows = [f"j{k},{10 * k},1,{30 + 7 * (k % 5)}" for k in range(30)]
    (tmp_path / "jobs.csv").write_text("\n".join(["job,arrival,gpus,duration", *rows]) + "\n")
    return tmp_path


def test_a_run_that_lost_turns_and_jobs_never_wins(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = typed("compare jobs.csv --cluster 1x1 --policy fifo,lucky.py:Lucky --workers 1 --out kept")
    told = capsys.readouterr()
    assert code == 1
    assert "decides nothing" in told.out
    assert "beats" not in told.out
    assert MARK in told.out
    assert "decisions were lost" in told.err
    assert "the policy raised ValueError: too much" in told.err
    assert "lucky.py:8" in told.err
    assert "nan" not in told.out
    assert "jobs did not end" in told.err
    results = pl.read_parquet(folder / "kept" / "results.parquet")
    assert results["lost_turns"].to_list()[0] == 0
    assert results["lost_turns"].to_list()[1] > 0
    assert f"{results['unfinished'][1]:.0f} of 30 jobs did not end" in results["doubts"][1]  # most of them had not even arrived
    assert results["jobs"].to_list() == [30, 30]


def test_measured_costs_grow_with_the_gang() -> None:
    """8 GPUs: 4 + 3 x 2 s to start, and 31 + 3 x 2 s to resume after the short job, which itself starts in 4 s."""
    jobs = [{"job": "wide", "arrival": 0, "gpus": 8, "duration": 100}, {"job": "short", "arrival": 50, "gpus": 1, "duration": 10}]
    run = simulate(jobs, "1x8", "srtf", costs="measured")
    ends = dict(run.jobs.select("job", "finish").iter_rows())
    assert ends == {"short": 50 + 4 + 10, "wide": 64 + 37 + (100 - 40)}
    assert not free_stops(run.summary)
    assert Costs.parse("measured").scaled(31.0, 4) == 35.0
    assert Costs.parse("measured").scaled(0.0, 4) == 0.0


def test_a_run_with_some_waiting_elastic_jobs_or_several_types_may_tell_something(folder: Path) -> None:
    assert no_contest(simulate("jobs.csv", "1x1", "fifo").summary) == ""
    assert no_contest(simulate("jobs.csv", "1x4", "las", round=10.0).summary) == ""
    jobs = [{"job": f"j{k}", "arrival": 0.0, "gpus": 1, "duration": 50.0} for k in range(3)]
    assert no_contest(simulate(jobs, "1x4", "fifo").summary)
    assert no_contest(simulate(jobs, "a:1x4,b:1x4", "fifo").summary) == ""
    assert no_contest(simulate([{**job, "max_gpus": 4} for job in jobs], "1x4", "fifo").summary) == ""


def test_a_mistake_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = LostTurnWords()
    for number in range(1, 101):
        words(Incident(float(number), number, "the same mistake" if number != 5 else "another one"))
    told = capsys.readouterr().err
    assert told.count("the same mistake") == 1
    assert told.count("another one") == 1
    assert "10 turns lost" in told
    assert "100 turns lost" in told


# The search for saturation: it finds the true boundary with an interval over seeds, says when there is none, and refuses nonsense.

BASE = Setting(TraceSource(generator="generic", settings={"jobs": 300, "gpus": 16, "load": 0.5}), "4x4", "fifo")
FIFO = PolicyChoice("fifo")


@dataclass
class Pretended:
    """Runs nothing; loads above the limit of a seed are not steady."""

    limits: tuple[float, ...]
    asked: int = 0

    def __call__(self, cases: Sequence[Case]) -> SimpleNamespace:
        self.asked += 1
        steady = [case.axes["load"] <= self.limits[case.axes["seed"]] for case in cases]
        frame = {"state": "done", "message": "", "steady": steady, "queue_mean": 2.0, "jct_mean": 1.0}
        return SimpleNamespace(results=pl.DataFrame(frame))


def search(*limits: float, tolerance: float = 0.02) -> Saturation:
    pretended = Pretended(limits)
    return find_saturation(BASE, FIFO, pretended, low=0.2, high=1.2, tolerance=tolerance, seeds=range(len(limits)))  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0.31, 0.5, 0.77, 0.999])
def test_one_seed_gives_a_boundary_without_an_interval(limit: float) -> None:
    found = search(limit)
    assert found.load.value == pytest.approx(limit, abs=0.011)
    assert not found.load.known
    assert found.tried["load"].is_sorted()
    assert "to within 0.01 (1 seed); an interval needs 3 seeds at least" in str(found)


@pytest.mark.parametrize("limit", [0.31, 0.39, 0.52, 0.68, 0.97])
def test_the_interval_holds_all_of_what_bisection_leaves_open(limit: float) -> None:
    """Seeds that agree know the boundary up to the width of their bracket, on either side."""
    found = search(limit, limit, limit, tolerance=0.2).load
    assert found.low <= limit <= found.high
    assert found.high - found.value == pytest.approx(found.value - found.low)
    assert 0.1 < found.high - found.low <= 0.2 + 1e-9


def test_a_range_without_a_boundary_is_said_so() -> None:
    assert str(search(0.1, 0.1)) == "fifo does not even sustain a load of 0.2 (2 seeds)."
    assert str(search(2.0)) == "fifo sustains a load of 1.2, the highest tried (1 seed)."
    assert "1 of them sustain even 1.2, so that the range is too narrow" in str(search(0.8, 0.9, 2.0))


@pytest.mark.parametrize(("search", "message"), [((1.0, 0.5, 0.1), "1 to 0.5 is no range"), ((0.5, 1.0, 0.0), "is never reached")])
def test_nonsense_is_refused(search: tuple[float, float, float], message: str) -> None:
    low, high, tolerance = search
    with pytest.raises(UsageError, match=message):
        find_saturation(BASE, FIFO, Pretended((1.0,) * 5), low=low, high=high, tolerance=tolerance)  # type: ignore[arg-type]


# Filling a cluster with pods: what is asked for, what is placed, and how mistakes in the two tables are told.

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,16000,2,T4\nn1,16000,64000,4,V100\nn2,8000,16000,0,\n"
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec
a,1000,1000,1,500,
b,1000,1000,1,300,T4|V100
c,2000,4000,1,1000,
d,1000,1000,2,1000,V100
e,1000,1000,0,0,
"""


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    pods, nodes = tmp_path / "pods.csv", tmp_path / "nodes.csv"
    pods.write_text(PODS)
    nodes.write_text(NODES)
    return pods, nodes


def test_pods_ask_for_what_was_wanted_and_no_device_is_overbooked(tables: tuple[Path, Path]) -> None:
    found = fill(*tables, "fgd", tune=1.3, seed=1)
    assert 6000 * 1.3 - 2000 < found.asked[-1] <= 6000 * 1.3
    assert found.failed == found.placements["node"].null_count() > 0
    assert found.filled.used[-1] <= 6000
    assert found.curves["alloc"].drop_nulls().is_sorted()
    assert len(found.curves) == 131


def test_a_load_below_the_trace_leaves_pods_out(tables: tuple[Path, Path]) -> None:
    found = fill(*tables, tune=0.3)
    assert found.asked[-1] <= 1800
    assert len(set(found.placements["pod"])) == len(found.order) < 5


def test_equal_seeds_are_equal_and_others_are_not(tables: tuple[Path, Path]) -> None:
    one, again, other = (fill(*tables, "random", seed=seed).placements for seed in (3, 3, 4))
    assert one.equals(again)
    assert not one.equals(other)


def test_memory_bounds_a_node_although_no_score_sees_it(tables: tuple[Path, Path]) -> None:
    pods, nodes = tables
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\nbig,0,40000,1,100\n")
    found = fill(pods, nodes, "packing", tune=0.1)
    assert set(found.placements["node"]) == {"n1", None}


def test_a_tie_goes_to_the_first_node_also_where_scores_differ_a_little(tables: tuple[Path, Path]) -> None:
    pods, nodes = tables
    pods.write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,0,1,1000\n")
    first, close = (fill(pods, nodes, "bestfit", tune=0.2, tie=tie).placements["node"][0] for tie in (0.0, 100.0))
    assert (first, close) == ("n0", "n0")
    nodes.write_text(NODES.replace("n0", "n9"))
    first, close = (fill(pods, nodes, "bestfit", tune=0.2, tie=tie).placements["node"][0] for tie in (0.0, 100.0))
    assert (first, close) == ("n9", "n1")


def test_the_command_writes_curves_and_placements(cli: Cli, tables: tuple[Path, Path], tmp_path: Path) -> None:  # noqa: F811
    pods, nodes = tables
    curves, where = tmp_path / "curves.csv", tmp_path / "where.csv"
    done = cli(f"placement fill {pods} --cluster {nodes} --placement bestfit --compat fgd --out {curves} --placements {where} -o json")
    assert done.code == 0
    table = pl.read_csv(curves)
    assert table.columns == ["arrived", "alloc", "frag", "frag_of_idle"]
    assert done.json[0]["alloc"] == table["alloc"].drop_nulls()[-1]
    assert pl.read_csv(where)["node"].null_count() == done.json[0]["failed"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("c,2000,4000,1,1000,", "c,2000,4000,1,1500,"), "pods.csv:4: field 'gpu_milli': 1500 thousandths of each GPU"),
        (("d,1000,1000,2,1000,", "d,1000,1000,2,500,"), "parts are of one GPU"),
        (("T4|V100", "H100"), "no node has model 'H100'"),
        (("a,1000", "a,-1000"), "-1000 is below zero"),
        (("b,1000", "a,1000"), "'a' stands here twice"),
        (("c,2000,4000,1,", "c,2000,4000,1.5,"), "1.5 is not a whole number of GPUs"),
        (("gpu_milli", "milli"), "column 'gpu_milli' is missing"),
        (("e,1000,1000,0,0", "e,,1000,0,0"), "is empty"),
    ],
)
def test_a_mistake_in_the_pods_is_told_with_its_line(tables: tuple[Path, Path], change: tuple[str, str], told: str) -> None:
    pods, nodes = tables
    pods.write_text(PODS.replace(*change))
    with pytest.raises(GantlineError, match=f"(?s){told}"):
        fill(pods, nodes)


def test_other_mistakes_are_told(tables: tuple[Path, Path]) -> None:
    for options, told in (
        ({"placement": "fdg"}, "no rule 'fdg'.*did you mean 'fgd'"),
        ({"tune": 0.0}, "0 is not a load"),
        ({"tie": -1.0}, "-1 is not a difference of scores"),
        ({"compat": "gfd"}, "no scheme of a filling 'gfd'"),
    ):
        with pytest.raises(GantlineError, match=told):
            fill(*tables, **options)
    pods, nodes = tables
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn2,8000,16000,0,\n")
    with pytest.raises(GantlineError, match="no node has GPUs"):
        fill(pods, nodes)
