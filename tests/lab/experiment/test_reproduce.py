"""Reproductions: published figures run again in seconds, and the framework that judges them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from gantline.cli.main import main
from gantline.core.errors import NotFoundError
from gantline.lab.experiment.reproduction import Claim, Study, find_study, judge, markdown_table, section, study_names, verdict_of
from gantline.lab.experiment.setting import run_setting
from gantline.lab.experiment.sweep import run_sweep
from gantline.systems.blox.studies import LOAD, blox_setting

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


def themis_results(worst: dict[str, float], restarts: tuple[float, float, float] = (3.0, 2.0, 1.0)) -> pl.DataFrame:
    often = {"themis, leases of 5 min": restarts[0], "themis f=0.8": restarts[1], "themis, leases of 40 min": restarts[2]}
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
    assert main(["reproduce", "list", "-o", "json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == study_names()
    folder = tmp_path / "r"
    arguments = ["reproduce", "blox-fig6", "-o", str(folder), "--page", str(tmp_path / "page.md"), "--workers", "1"]
    assert main(arguments) == 0
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
    assert main(["reproduce", "gavel-single"]) == 3
    assert "get simulation_throughputs.json from the simulator folder of the repository" in capsys.readouterr().err
    assert main(["reproduce", "gavel-single", "--data", str(tmp_path)]) == 3
    assert f"'simulation_throughputs.json' is not under {tmp_path}" in capsys.readouterr().err
    assert not find_study("gavel-multi", tmp_path).ready
    assert find_study("blox-fig6").ready


def test_tables_are_escaped() -> None:
    frame = pl.DataFrame({"a|b": ["x|y"], "n": [1234.5]})
    assert markdown_table(frame) == "| a\\|b | n |\n| --- | ---: |\n| x\\|y | 1,234 |"
