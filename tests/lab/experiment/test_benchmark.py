"""The public benchmark: its page says what its command finds, and a new policy can stand in its table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gantline.cli.main import main
from gantline.core.errors import NotFoundError
from gantline.lab.experiment.benchmark import FEWER, all_policies, benchmark_cases, benchmark_page, tables_of
from gantline.lab.experiment.grid import Case, PolicyChoice
from gantline.lab.experiment.sweep import run_sweep
from gantline.lab.report.run_warnings import MARK
from gantline.traces.generators.presets import benchmark_traces

PAGE = Path(__file__).parents[3] / "docs" / "benchmark.md"
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
    rows = rows_of(PAGE.read_text(encoding="utf-8"), workload)
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
    arguments = ["--workload", "gangs", "--policy", "fifo", "--also", f"{mine}:Mine", "--workers", "1", "--limit", "inf"]
    assert main(["benchmark", *arguments]) == 0
    rows = rows_of(capsys.readouterr().out, "gangs")
    assert rows["fifo"] == rows["Mine"]


def test_an_unknown_workload_is_refused() -> None:
    with pytest.raises(NotFoundError, match="did you mean 'swarm'"):
        benchmark_cases([PolicyChoice("fifo")], ["swarn"])


def _blinded(case: Case) -> Case:
    setting = replace(case.setting, estimates="none")
    return replace(case, setting=setting, hash=setting.hash)
