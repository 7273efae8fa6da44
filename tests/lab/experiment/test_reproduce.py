"""Reproductions: published figures run again in seconds, and the framework that judges them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.typed import typed

from gantline import simulate
from gantline.core.errors import NotFoundError
from gantline.lab.experiment.benchmark import FEWER, all_policies, benchmark_cases, benchmark_page, tables_of
from gantline.lab.experiment.coverage.measures import (
    EQUALS,
    MARKOV,
    SHAPE,
    WORKLOADS,
    Guarded,
    Population,
    RandomOrder,
    Workload,
    coverage_over,
    draw_population,
    empty_start,
    erlang_c,
    history_coverage,
    lost_verdicts,
    power_over,
)
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.reproduction import Claim, Study, find_study, judge, markdown_table, section, study_names, verdict_of
from gantline.lab.experiment.setting import run_setting
from gantline.lab.experiment.sweep import run_sweep
from gantline.lab.report.run_warnings import MARK
from gantline.systems.blox.studies import LOAD, blox_setting
from gantline.traces.generators import generate
from gantline.traces.generators.presets import benchmark_traces

_SEED_BY_SEED = {  # three seeds are too few for these
    f"{periods}: {claim}"
    for periods in ("mixed", "related")
    for claim in ("jobs run longer under the host policy than with CASSINI", "and longer with CASSINI than on links that are wide enough")
}
#: claims about shape that do not hold at small scale, and are shown so
NOT_FOUND = {
    "cassini-first-come": _SEED_BY_SEED,
    "cassini-leaf-spine": _SEED_BY_SEED,
    "dally-delays": {"sooner than policies that wait for ever or not at all"},
    "lyra-loans": {"calling back the cheapest servers stops fewer jobs than the other rules"},
}
DATA = Path(__file__).parents[4] / "shared" / "reference"
REFERENCE = DATA / "blox" / "sweep_reimplementation.csv"


def study_of(name: str) -> Study:
    study = find_study(name, DATA / ("elasticflow" if name == "afs-clusters" else name.partition("-")[0]))
    if not study.ready:
        pytest.skip(f"{study.needs} is not here ({study.data})")
    return study


#: studies that take longer than one CPU second, or of a system of which a quicker one runs at every change; meanwhile the records hold
#: what their policies do, and `test_every_study_says_what_it_is` their settings
IN_THE_LONG_RUN = {
    "afs-clusters", "afs-sharing", "allox-alpha", "allox-baselines", "antman-guests", "blox-synthesizer-dual",
    "blox-synthesizer-small-large", "cassini-first-come",
    "cassini-leaf-spine", "dally-delays", "elastic-tiresias", "elasticflow-ablation", "ffdl-batch", "gandiva-mechanisms",
    "gavel-estimation", "gavel-finish-time", "gavel-hierarchy", "gavel-makespan", "gavel-multi", "gavel-rounds", "gavel-single",
    "lyra-loans", "optimus-drf", "pollux-load", "shockwave-table", "sia-heterogeneous", "sia-homogeneous", "themis-fairness",
    "tiresias-comparison",
}  # fmt: skip
CASES = [pytest.param(name, marks=pytest.mark.long if name in IN_THE_LONG_RUN else ()) for name in study_names()]


def test_only_studies_that_exist_are_left_to_the_long_run() -> None:
    assert set(study_names()) > IN_THE_LONG_RUN


@pytest.mark.parametrize("name", CASES)
def test_the_shape_of_every_figure_is_found_at_small_scale(name: str, tmp_path: Path) -> None:
    study = study_of(name)
    found = judge(study, run_sweep(study.cases("small"), tmp_path), "small")
    missed = {claim.statement for claim in found.claims if not (claim.holds or claim.is_number)}
    assert missed == NOT_FOUND.get(name, set()), section(found)
    assert found.verdict.startswith("Not reproduced" if missed else "Reproduced")
    assert all(claim.baseline and claim.tolerance for claim in found.claims), "every claim says what it is held against, and how closely"
    assert len(study.charts(found.sweep)) >= 1
    assert found.table.height * (found.table.width - 1) > 1, "more than one number"


@pytest.mark.parametrize("name", study_names())
def test_every_study_says_what_it_is(name: str) -> None:
    study = study_of(name)
    assert study.name == name
    assert all(len(text.split()) > 4 for text in (study.paper, study.figure, study.what))
    assert len(study.cases("full")) > len(study.cases("small"))


def test_the_page_of_the_documentation_has_a_verdict_on_every_figure() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reproductions.md").read_text(encoding="utf-8")
    sections = {part.splitlines()[0]: part for part in page.split("\n## ")[1:]}
    assert list(sections) == study_names(), "run: gantline reproduce all --scale full --page docs/reproductions.md"
    for name, text in sections.items():
        assert find_study(name).what in text
        assert re.search(r"\*\*(Reproduced|Reproduced in shape|Not reproduced): (shape \d+ of \d+)?(, )?(numbers \d+ of \d+)?\.\*\*", text)
        assert "| claim | kind | against | tolerance | published | found | verdict |" in text


@pytest.mark.parametrize(("policy", "scheduler"), [("fifo", "Fifo"), ("las", "Las"), ("srtf", "Srtf")])
def test_full_scale_equals_the_reference_near_saturation(policy: str, scheduler: str) -> None:
    if not REFERENCE.exists():
        pytest.skip(f"the reference results of Blox are not here ({REFERENCE})")
    rows = pl.read_csv(REFERENCE).filter((pl.col("load") == 7) & (pl.col("scheduler") == scheduler))
    run = run_setting(blox_setting("full").with_value(LOAD, 7).with_value("policy", policy))
    assert run.summary["average_jct"] == pytest.approx(rows["avg_jct_s"][0], abs=0.06)
    assert run.summary["average_responsiveness"] == pytest.approx(rows["avg_resp_s"][0], abs=0.06)
    assert run.summary["completed_tracked"] == rows["tracked_done"][0]


def claim(holds: bool, is_number: bool = False) -> Claim:
    return Claim("the sun rises", "east", "east", holds, is_number)


@pytest.mark.parametrize(
    ("claims", "words"),
    [
        ([claim(True), claim(True, True)], "Reproduced: shape 1 of 1, numbers 1 of 1."),
        ([claim(True), claim(False, True)], "Reproduced in shape: shape 1 of 1, numbers 0 of 1."),
        ([claim(True), claim(False, True), claim(True, True)], "Reproduced in shape: shape 1 of 1, numbers 1 of 2."),
        ([claim(False), claim(True), claim(True, True)], "Not reproduced: shape 1 of 2, numbers 1 of 1."),
        ([claim(True)], "Reproduced: shape 1 of 1."),
    ],
)
def test_a_figure_is_its_shape_first_and_its_numbers_second(claims: list[Claim], words: str) -> None:
    assert verdict_of(claims) == words


def test_a_number_is_met_within_its_tolerance_and_shown_with_its_distance() -> None:
    assert Claim.number("factor", 2.0, 2.19).holds
    far = Claim.number("factor", 16.14, 8.64)
    assert (far.holds, far.kind, far.published, far.found) == (False, "number", "16.14 times", "8.64 times (-46 %)")


def test_a_shape_without_terms_is_a_mistake_in_the_study() -> None:
    with pytest.raises(ValueError, match="no terms for the claim 'the sun rises'"):
        find_study("blox-fig6").on_terms(claim(True))
    assert find_study("sia-heterogeneous").on_terms(Claim("philly: Sia is ahead of Pollux", "", "", True)).baseline == "Pollux"


def themis_results(worst: dict[str, float]) -> pl.DataFrame:
    often = {"themis, leases of 5 min": 3.0, "themis f=0.8": 2.0, "themis, leases of 40 min": 1.0}
    named = worst | {name: 1.5 for name in often if name not in worst}
    rows = [
        {"policy": name, "rho_max": rho, "rho_mean": 1.0, "jct_mean": 1.0, "restarts": often.get(name, 0.0)} for name, rho in named.items()
    ]
    return pl.DataFrame(rows)


def test_themis_is_held_against_the_fairest_baseline_and_must_fall_with_f_all_the_way() -> None:
    knobs = {"themis f=0": 3.23, "themis f=0.4": 2.29, "themis f=0.8": 1.90, "themis f=1": 2.13}
    baselines = {"fifo": 9.93, "las": 2.28, "srtf": 1.51}
    study = find_study("themis-fairness")

    def held(rho: dict[str, float]) -> dict[str, bool]:
        return {claim.statement: claim.holds for claim in study.claims(themis_results(baselines | rho), "full")}

    rises, falls = held(knobs), held(knobs | {"themis f=0.8": 0.6, "themis f=1": 0.6})
    assert not rises["the worst rho falls with f"]
    assert not rises["fairer than schedulers that do not look at it"]
    assert not rises["worst rho, the fairest baseline over Themis"]
    assert falls["the worst rho falls with f"]
    assert falls["fairer than schedulers that do not look at it"]


def test_failed_runs_leave_no_verdict() -> None:
    assert verdict_of([claim(True)], failures=2) == "No verdict: 2 runs failed."


def test_the_command_lists_runs_and_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("reproduce list -o json") == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == study_names()
    folder = tmp_path / "r"
    assert typed(f"reproduce blox-fig6 -o {folder} --page {tmp_path}/page.md --workers 1") == 0
    told = capsys.readouterr().out
    assert "**Reproduced" in told
    assert "| jobs/h |" in told
    assert (folder / "report.md").read_text(encoding="utf-8").strip() == told.strip()
    assert pl.read_parquet(folder / "claims.parquet").height == 4
    assert (folder / "figures" / "jct-load.svg").exists()
    assert (tmp_path / "page.md").read_text(encoding="utf-8").startswith("# Reproductions\n")


def test_an_unknown_figure_is_answered_with_near_names() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'blox-fig6' or 'blox-fig12'"):
        find_study("blox-fig")


def test_a_figure_on_published_data_says_where_to_get_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("reproduce gavel-single") == 3
    assert "get simulation_throughputs.json from the simulator folder of the repository" in capsys.readouterr().err
    assert typed(f"reproduce gavel-single --data {tmp_path}") == 3
    assert f"'simulation_throughputs.json' is not under {tmp_path}" in capsys.readouterr().err
    assert not find_study("gavel-multi", tmp_path).ready
    assert find_study("blox-fig6").ready


def test_tables_are_escaped() -> None:
    frame = pl.DataFrame({"a|b": ["x|y"], "n": [1234.5]})
    assert markdown_table(frame) == "| a\\|b | n |\n| --- | ---: |\n| x\\|y | 1,234 |"


# The public benchmark: its page says what its command finds, and a new policy can stand in its table.

BENCHMARK_PAGE = Path(__file__).parents[3] / "docs" / "benchmark.md"
AGAIN = "run: gantline benchmark -o docs/benchmark.md"


def cells(line: str) -> list[str]:
    """The cells of a row, whichever of them are bold."""
    return [cell.strip().strip("*") for cell in line.strip("|").split("|")]


def rows_of(page: str, workload: str) -> dict[str, list[str]]:
    """The rows of a workload's table, by policy."""
    section = page.split(f"## {workload}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return {cells(line)[0].removesuffix(FEWER).removesuffix(MARK): cells(line)[1:] for line in lines}


@pytest.mark.parametrize("workload", list(benchmark_traces()))
def test_the_page_has_no_stale_rows(workload: str) -> None:
    rows = rows_of(BENCHMARK_PAGE.read_text(encoding="utf-8"), workload)
    assert {"fifo", "srtf", "las", "tiresias"} <= set(rows) <= {choice.title for choice in all_policies()}, AGAIN


def test_who_cannot_run_is_named_with_the_reason(tmp_path: Path) -> None:
    cases = [case for case in benchmark_cases([PolicyChoice("fifo"), PolicyChoice("srtf")], ["gangs"]) if case.setting.seed == 0]
    broken = [case if case.policy == "fifo" else _blinded(case) for case in cases]
    text = benchmark_page(tables_of(run_sweep(broken, tmp_path).results))
    assert "Not in the table: `srtf` (--estimates: policy 'srtf' needs remaining" in text
    assert "| srtf |" not in text


def test_a_policy_of_ones_own_stands_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "mine.py"
    head = "from dataclasses import dataclass\nfrom gantline.policies.fifo import Fifo\n\n"
    mine.write_text(f"{head}@dataclass(frozen=True)\nclass Mine(Fifo):\n    pass\n", encoding="utf-8")
    assert typed(f"benchmark --workload gangs --policy fifo --also {mine}:Mine --workers 1 --limit inf") == 0
    rows = rows_of(capsys.readouterr().out, "gangs")
    assert rows["fifo"] == rows["Mine"]


def test_an_unknown_workload_is_refused() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'swarm'"):
        benchmark_cases([PolicyChoice("fifo")], ["swarn"])


def _blinded(case: Case) -> Case:
    setting = replace(case.setting, estimates="none")
    return replace(case, setting=setting, hash=setting.hash)


# Verdicts on policies that are equal, on a population small enough for a test; Erlang's formula; the page and its command.

COVERAGE_PAGE = Path(__file__).parents[3] / "docs" / "coverage.md"


@pytest.fixture(scope="module")
def population() -> Population:
    return draw_population(Workload(True, SHAPE, jobs=100), (*EQUALS[:4], "fifo", "srtf"), range(30))


def test_policies_that_differ_are_told_apart_with_seeds_enough(population: Population) -> None:
    few, many = (power_over(population, ("fifo", "srtf", *EQUALS[:2]), seeds, 10) for seeds in (3, 12))
    assert few <= many
    assert many >= 0.9
    assert coverage_over(population, ("fifo", "srtf"), 0, 6, 0.95, 40) >= 0.85


def test_salts_are_different_orders_of_the_same_policy() -> None:
    trace = generate("generic", seed=0, **WORKLOADS["load 0.9 in every seed"].settings())
    hashes = [simulate(trace, "4x4", RandomOrder(salt)).summary["log_hash"] for salt in (0, 1, 1)]
    assert hashes[0] != hashes[1] == hashes[2]


def test_erlangs_formula() -> None:
    """M/M/1 waits load / (1 - load) service times; two servers by hand: C = 1/3 at a load of one half, so 1/3 of a service time."""
    assert erlang_c(1, 0.9) == pytest.approx(9.0)
    assert erlang_c(2, 0.5) == pytest.approx(1 / 3)


def test_an_empty_start_shows_too_little_queueing() -> None:
    found = empty_start("8x8", 64, 0.9, 400, 6)
    assert found.plain < -0.3
    assert found.reported < -0.2


def test_the_guard_is_tried_on_what_can_and_what_cannot_be_sustained() -> None:
    light = Guarded("light", True, Workload(True, MARKOV, 100, 0.3), "fifo", {})
    heavy = Guarded("heavy", False, Workload(True, MARKOV, 100, 1.5), "fifo", {})
    assert (light.unsteady(3), heavy.unsteady(3)) == (0.0, 1.0)


def test_more_seeds_lose_fewer_verdicts() -> None:
    lost = [lost_verdicts(0.1, seeds) for seeds in (1, 5, 10, 20)]
    assert lost[0] == pytest.approx(0.1)
    assert lost == sorted(lost, reverse=True)
    assert lost[1] == pytest.approx(0.00856, abs=1e-5)


def test_histories_are_held_against_other_traces(population: Population) -> None:
    share = history_coverage(Workload(True, SHAPE, jobs=40), population, ("fifo", "srtf"), range(100, 102))
    assert share in (0.0, 0.5, 1.0)


def test_the_page_is_there_and_effort_that_is_too_small_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    page = COVERAGE_PAGE.read_text(encoding="utf-8")
    for title in ("Wrong verdicts", "Power", "Intervals of changes", "What-if on one history", "The overload guard", "The empty start"):
        assert f"## {title}" in page
    assert typed("experiment coverage --seeds 3") == 2
    assert "--seeds: 3 are too few (give 40 or more)" in capsys.readouterr().err
