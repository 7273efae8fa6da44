"""Options of the whole suite."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from tests.cpu_seconds import CpuSeconds

# How fast the machine is, or how busy, is nothing that a test may depend on.
# Examples are the same in every run: what fails here fails everywhere. `pytest --hypothesis-profile=search` looks for new ones.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", settings.get_profile("default"), derandomize=False, max_examples=500)
settings.load_profile("default")
# Our systems and frames are small: threads that wait for work on busy cores cost more than they do.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")
# Users of tests have no accounts: where root runs them, their jobs are root's, but for the tests that are about accounts.
os.environ.setdefault("GANTLINE_RUN_AS", "service")
# Neither this process nor those that tests start translate every module anew, also where images ask Python to leave no files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-seconds", action="store_true", help="print where the processor time goes: folders, files, test functions")
    parser.addoption("--chaos-seconds", type=float, default=0.0, help="how long faults are thrown at services, in all; 0: a short scenario")
    parser.addoption("--plans", type=int, default=200, help="how many random plans to commit in two ways")
    parser.addoption("--scenarios", type=int, default=40, help="how many seeded scenarios of the faulty executor to tell")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Scenarios come in pieces of forty, so that workers share them and a failure names its piece."""
    if "scenario_seeds" in metafunc.fixturenames:
        total, piece = metafunc.config.getoption("--scenarios"), 40
        pieces = [range(first, min(first + piece, total)) for first in range(0, total, piece)]
        metafunc.parametrize("scenario_seeds", pieces, ids=[f"{p.start}-{p.stop - 1}" for p in pieces])


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuSeconds())


@pytest.fixture(scope="session", autouse=True)
def accounts_checked() -> Iterator[None]:
    """Every run that ends in this process says the same of when gangs held devices and of what their jobs are charged."""
    from tests.oracles.accounts import check_accounts

    from gantline.engine.drivers.simulation import Simulation
    from gantline.engine.drivers.stepping import Virtual

    run = Simulation.run

    def run_and_check(simulation: Simulation) -> None:
        whole = not len(simulation.state.rows)
        run(simulation)
        assert not (wrong := check_accounts(simulation.engine, whole=whole, prompt=isinstance(simulation.driver, Virtual))), wrong

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Simulation, "run", run_and_check)
        yield


@pytest.fixture
def one_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy is checked in one scenario: for tests of how a check is asked for and what it tells."""
    from gantline.lab.conformance import suite

    first = suite.scenarios()[:1]
    monkeypatch.setattr(suite, "scenarios", lambda: first)
    monkeypatch.setattr(suite, "_FAULTY_SCENARIOS", ())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the comparisons that could not be made: a green run without them says less."""
    skipped = [report for report in terminalreporter.getreports("skipped") if "shared/reference" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} comparisons with the originals were not made: their results are not in ../shared/reference; "
            "recorded runs were compared instead (tests/records)",
            yellow=True,
        )
    records = (Path(__file__).parent / "records").glob("*.txt")
    if changed := sorted(record.stem for record in records if "# held: not compared" in record.read_text(encoding="utf-8")):
        terminalreporter.write_line(f"changed, and not compared with their originals since: {', '.join(changed)}", yellow=True)
