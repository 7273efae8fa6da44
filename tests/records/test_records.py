"""Every policy, regime and imitation still does what it did when the comparisons with the originals held, on every checkout.

One run answers three questions: is it what was recorded, is it the same on both clocks, and does its progress move? At every change the
runs on the engine take turns on virtual time and through orders and reports; the record holds what both must give.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.records import record, write
from tests.records.record import NOT_COMPARED, Record, advice, differences, line_of, name_in, read_record, recorded_systems
from tests.records.runs import COMPARISONS, Recorded, recorded_runs
from tests.records.worlds import make_worlds

from gantline.engine.imitations.registry import find_scope
from gantline.engine.regime import regime_names
from gantline.policies.registry import policy_names
from gantline.simulator.run import Run

ROOT = Path(__file__).parents[2]
RUNS = recorded_runs()
SYSTEMS = sorted({run.system for run in RUNS})
CLOCKS = ("acknowledged", "instant")  # a system with one run takes the first: other tests take the second
COMPILED = ("blox", "tiresias", "records", "tables")  # loops that report after some thousand decisions, and at the end


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[..., Run]]:
    return make_worlds(tmp_path_factory.mktemp("worlds"))


def line_on(clock: str, worlds: dict[str, Callable[..., Run]], run: Recorded) -> str:
    """What is written down of a run, once its reports have been looked at."""
    reports: list[tuple[float, int, int]] = []
    options: dict[str, Any] = {"on_progress": lambda *report: reports.append(report)}
    if find_scope(run.regime) is None:  # an imitation has a clock of its own
        options["executor"] = clock
    found = worlds[run.world](run.policy, run.settings, **run.options, **options)
    times, arrived, inside = zip(*reports)
    ended = [came - here for came, here in zip(arrived, inside)]
    assert list(times) == sorted(times)
    assert all(0 <= count <= found.summary["jobs"] for count in ended)
    if run.regime not in COMPILED and found.summary.get("loop") not in COMPILED:
        assert any(0 < count < found.summary["jobs"] for count in ended), f"{run.name}: the bar stands still"
    return line_of(run.name, found)


def settings_in_turn(runs: list[Recorded]) -> list[Recorded]:
    """Every policy, and its artifact's way, in every world and every value of every setting, but of products of settings not every pair."""
    taken: list[Recorded] = []
    seen: set[object] = set()
    for run in runs:
        asked = {(run.policy, run.world, run.settings.get("compat")), *map(str, (run.settings | run.options).items())}
        if asked - seen:
            taken.append(run)
            seen |= asked
    return taken


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)], ids=["in turn", "all"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_run_of_a_system_is_what_was_recorded(system: str, every: bool, worlds: dict[str, Callable[..., Run]]) -> None:
    """Each setting once and on one clock, or all runs on both."""
    recorded, _ = read_record(system)
    runs = [run for run in RUNS if run.system == system]
    as_recorded = {name_in(line): line for line in recorded.lines}
    lines = {run.name: as_recorded.get(run.name, "") for run in runs}
    for turn, clock in enumerate(CLOCKS):
        made = {run.name: line_on(clock, worlds, run) for run in (runs if every else settings_in_turn(runs)[turn::2])}
        told = differences(recorded, lines | made)
        assert not told, "\n".join([f"executor {clock}:", *told, advice(system)])


def test_no_policy_world_or_setting_waits_for_the_long_run() -> None:
    taken = settings_in_turn(RUNS)
    assert len(taken) < len(RUNS)
    assert {(run.policy, run.world) for run in taken} == {(run.policy, run.world) for run in RUNS}
    assert {str(one) for run in taken for one in (run.settings | run.options).items()} == {
        str(one) for run in RUNS for one in (run.settings | run.options).items()
    }


@pytest.mark.parametrize("system", SYSTEMS)
def test_no_record_was_changed_by_hand(system: str) -> None:
    recorded, seal = read_record(system)
    assert seal == recorded.seal, f"tests/records/{system}.txt was not written by `{record.COMMAND}`: {advice(system)}"


def test_every_policy_and_regime_has_a_record() -> None:
    known = [(name, regime) for regime in regime_names() if (scope := find_scope(regime)) for name in scope.policies]
    runs = {(run.policy, run.regime) for run in RUNS}
    assert {name for name, _ in runs} == set(policy_names())
    assert {regime for _, regime in runs} == set(regime_names())
    assert set(known) <= runs
    assert recorded_systems() == SYSTEMS


def test_what_held_names_the_comparisons_that_there_are() -> None:
    """Whoever moves a comparison moves its name here too, or a record would be written without it."""
    assert [path for paths in COMPARISONS.values() for path in paths if not (ROOT / path).exists()] == []
    assert [system for system in COMPARISONS if not ((held := read_record(system)[0].held)[:1].isdigit() or held == NOT_COMPARED)] == []


def test_a_change_is_told_with_both_lines_and_the_command() -> None:
    before = Record("gavel", "2 tests", ("a | gavel | 11 | 1.0 | 2.0 | 1/1 | 0 | a:2.0", "gone | gavel | 12 | 1.0 | 2.0 | 1/1 | 0 | a:2.0"))
    told = differences(
        before, {"a | gavel": "a | gavel | 99 | 3.0 | 4.0 | 1/1 | 0 | a:4.0", "new | gavel": "new | gavel | 1 | - | - | 0/1 | 0 | "}
    )
    assert told[0] == f"a | gavel\n  recorded: {before.lines[0]}\n  now:      a | gavel | 99 | 3.0 | 4.0 | 1/1 | 0 | a:4.0"
    assert told[1:] == ["new | gavel: no record", "gone | gavel: recorded, but no such run is made"]
    assert "make records SYSTEMS=gavel" in advice("gavel")
    assert "comparisons with the original" in advice("gavel")


def test_a_record_that_was_written_without_the_original_says_so_until_it_is_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "fifo | blox | 1 | - | - | 0/1 | 0 | "
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(write, "REFERENCE", tmp_path / "nowhere")
    monkeypatch.setattr(write, "lines_now", lambda systems, folder: {"blox": {"fifo | blox": line}})
    assert write.main(["blox"]) == 0
    written, seal = read_record("blox")
    assert (written.held, written.lines, seal) == (NOT_COMPARED, (line,), written.seal)
    assert f"written: blox.txt; {NOT_COMPARED}" in capsys.readouterr().out
    assert write.main(["blox"]) == 0
    assert "1 of 1 records are what they were" in capsys.readouterr().out
    monkeypatch.setattr(write, "REFERENCE", tmp_path)
    monkeypatch.setattr(write, "compare_again", lambda system: "2 tests")
    assert write.main(["blox"]) == 0
    assert read_record("blox")[0].held == "2 tests"


def test_a_system_without_an_original_is_written_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = "lyra | rounds | 1 | - | - | 0/1 | 0 | "
    monkeypatch.setattr(record, "FOLDER", tmp_path)
    monkeypatch.setattr(write, "lines_now", lambda systems, folder: {"lyra": {"lyra | rounds": line}})
    assert write.main(["lyra"]) == 0
    written, seal = read_record("lyra")
    assert (written.lines, written.held, seal) == ((line,), write.NOTHING_TO_COMPARE, written.seal)
    assert not differences(written, {"lyra | rounds": line})
