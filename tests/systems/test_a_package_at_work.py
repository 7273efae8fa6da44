"""An installed package brings one thing of every kind, and commands in processes other than the test's use each.

What a command prints or writes is asked of one process that runs them all; sweeps and services start processes themselves.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.test_live import home  # noqa: F401
from tests.systems.some_package import EVERY_KIND, write_package

from gantline.cli.main import main
from gantline.registry import KINDS

Run = Callable[..., str]
BETWEEN = "\x1d\n"
RUN_ALL = f"""
import json, sys
from gantline.cli.main import main

for command in json.loads(sys.argv[1]):
    if main(command) != 0:
        sys.exit(f"failed: {{command}}")
    print(end={BETWEEN!r})
"""
COMMANDS = (
    "simulate twins --cluster 1x4 --policy youngest --regime minutes --placement last --performance half-speed --executor slow:5 "
    "--allocations-out held.csv -o json",
    "trace import lengths lengths.txt jobs.csv",
    "simulate jobs.csv --cluster 1x1 --policy youngest --regime acme -o json",
    "fill pods.csv --cluster nodes.csv --placement bestfit --compat in-order --placements placed.csv",
    "system show acmesched -o json",
    "placement list -o json",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("site")
    write_package(found, **EVERY_KIND)
    return found


@pytest.fixture
def gantline(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the program where the package is installed; what it prints."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        done = subprocess.run([sys.executable, "-m", "gantline", *arguments], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def told(site: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Where one process has run all of these commands, and what each printed."""
    folder = tmp_path_factory.mktemp("told")
    (folder / "lengths.txt").write_text("30\n90\n")
    (folder / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,8192,2,V100\n")
    pods = "".join(f"p{at},1000,1024,1,{milli},\n" for at, milli in enumerate((700, 200, 1000)))
    (folder / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + pods)
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, json.dumps([line.split() for line in COMMANDS])],
        cwd=folder, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder, done.stdout.split(BETWEEN)[:-1]


def test_every_kind_is_in_the_package() -> None:
    assert EVERY_KIND.keys() == {*KINDS, "systems"}


def test_a_run_uses_its_generator_policy_regime_placement_model_and_executor(told: tuple[Path, list[str]]) -> None:
    folder, printed = told
    found = json.loads(printed[0])
    assert (found["policy"], found["regime"], found["round"], found["placement"]) == ("youngest", "minutes", 60.0, "last")
    assert found["average_jct"] == 5.0 + 2 * 60.0
    with open(folder / "held.csv", encoding="utf-8") as file:
        assert sorted(row["devices"] for row in csv.DictReader(file)) == ['{"devices":[2]}', '{"devices":[3]}']


def test_its_importer_reads_and_its_imitation_runs(told: tuple[Path, list[str]]) -> None:
    found = json.loads(told[1][2])
    assert (found["simulator"], found["makespan"]) == ("Acme's", 120.0)


def test_its_scheme_fills_a_cluster(told: tuple[Path, list[str]]) -> None:
    assert [row.split(",")[0] for row in (told[0] / "placed.csv").read_text().split()[1:]] == ["p0", "p1", "p2"]


def test_its_system_and_its_parts_are_listed(told: tuple[Path, list[str]]) -> None:
    *_, system, placements = told[1]
    assert json.loads(system)["placements"] == ["acme.last"]
    assert {"last", "acme.last", "first-free"} <= {row["placement"] for row in json.loads(placements)}


def test_its_study_is_run_by_processes_of_a_sweep(gantline: Run) -> None:
    told = gantline("reproduce", "acme-figure", "--workers", "2")
    assert "the second waits for the first" in told
    assert "holds" in told


def test_its_runner_starts_the_jobs_of_a_service(
    gantline: Run,
    home: Path,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
) -> None:
    gantline("up", "--devices", "cpu:2", "--executor", "noted", "--policy", "youngest", "--placement", "last", "--detach")
    assert main(["submit", "--gpus", "cpu:1", "--", "true"]) == 0  # from here: only the service's own process has the package
    assert main(["wait", capsys.readouterr().out.strip()]) == 0
    assert (home / "orders.txt").read_text().startswith("start\n")
