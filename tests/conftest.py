"""Options of the whole suite."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers
from tests.combinations import ALL_EXAMPLES, SHARE_OF_EXAMPLES, a_quarter, cases_left_out
from tests.commands_read_once import make_validators_once, read_signatures_once, settle_signatures_once
from tests.cpu_seconds import CpuSeconds
from tests.later import tests_that_wait
from tests.settled import read_settled, run_settled_plainly

# How fast the machine is, or how busy, is nothing that a test may depend on.
# Examples are the same in every run: what fails here fails everywhere; `--hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("any-speed", settings.get_profile("search"), derandomize=True)
settings.load_profile("any-speed")
# Nor do they depend on which of our modules are loaded: newer versions of Hypothesis draw constants from the sources of all of them,
# and read them for it, which takes each worker 4 CPU seconds in a new checkout.
providers.is_local_module_file = lambda path: False  # type: ignore[attr-defined]
# Our systems and frames are small: threads that wait for work on busy cores cost more than they do.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("POLARS_MAX_THREADS", "1")
# Users of tests have no accounts: where root runs them, their jobs are root's, but for the tests that are about accounts.
os.environ.setdefault("GANTLINE_RUN_AS", "service")
# Neither this process nor those that tests start translate every module anew, also where images ask Python to leave no files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


FEWEST_EXAMPLES = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="all random examples and the large forms of tests: `make test-long`")
    parser.addoption(
        "--later", action="store_true", help="also the tests of tests/later.txt, which wait for the long run, in their small form"
    )
    parser.addoption("--compiled", action="store_true", help="compile kernels that have not changed, too: `make settled`, and with --long")
    parser.addoption("--cpu-seconds", action="store_true", help="print where the processor time goes: folders, files, test functions")
    parser.addoption("--chaos-seconds", type=float, default=0.0, help="how long faults are thrown at services, in all; 0: a short story")
    parser.addoption(
        "--stories", type=int, default=0, help="how many seeded stories of the faulty executor to tell; 0: 40, or 240 with --long"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Stories come in pieces of forty, so that workers share them and a failure names its piece."""
    if "story_seeds" in metafunc.fixturenames:
        total, piece = metafunc.config.getoption("--stories") or (240 if metafunc.config.getoption("--long") else 40), 40
        pieces = [range(first, min(first + piece, total)) for first in range(0, total, piece)]
        metafunc.parametrize("story_seeds", pieces, ids=[f"{p.start}-{p.stop - 1}" for p in pieces])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: the large form of a test, which runs in `make test-long` only")
    config.addinivalue_line("markers", "each_value(times=1): every value of every parameter so often; `make test-long` runs the product")
    config.addinivalue_line("markers", "pairs: every two values of every two parameters; `make test-long` runs the product")
    config.addinivalue_line("markers", "one_in(n): the first of every n cases; `make test-long` and `make records` run all of them")
    if config.getoption("--cpu-seconds"):
        config.pluginmanager.register(CpuSeconds())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """A million objects that stay to the end: garbage collection walks them neither while they are made nor among young ones."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.unfreeze()  # into the oldest generation
        gc.enable()


@pytest.fixture(scope="session")
def long(request: pytest.FixtureRequest) -> bool:
    """Whether tests take their large form."""
    return bool(request.config.getoption("--long"))


@pytest.fixture(scope="session")
def some(long: bool) -> Callable[[range], range]:
    """Of the numbers from which a test draws its examples itself: a quarter at every change, all of them with `--long`."""
    return lambda numbers: numbers if long else a_quarter(numbers)


@pytest.fixture(scope="session", autouse=True)
def commands_read_once() -> Iterator[None]:
    """Commands that are called in this process read and settle their signatures once, and their validators are made once."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        read_signatures_once(monkeypatch)
        settle_signatures_once(monkeypatch)
        make_validators_once(monkeypatch)
        yield


@pytest.fixture(scope="session", autouse=True)
def settled_kernels(long: bool, request: pytest.FixtureRequest) -> Iterator[None]:
    """Kernels whose machine code was tested as they are now run as Python: tests/settled.py."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        if not (long or request.config.getoption("--compiled")):
            run_settled_plainly(monkeypatch, read_settled())
        yield


@pytest.fixture(scope="session", autouse=True)
def accounts_checked() -> Iterator[None]:
    """Every run that ends in this process says the same of when gangs held devices and of what their jobs are charged."""
    from tests.oracles.accounts import check_accounts

    from gantline.drivers.simulation import Simulation
    from gantline.drivers.virtual import Virtual

    run = Simulation.run

    def run_and_check(simulation: Simulation) -> None:
        whole = not len(simulation.state.rows)
        run(simulation)
        assert not (wrong := check_accounts(simulation.engine, whole=whole, prompt=isinstance(simulation.driver, Virtual))), wrong

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(Simulation, "run", run_and_check)
        yield


@pytest.fixture
def one_story(long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy is checked in one story, in all of them with `--long`: for tests of how a check is asked for and what it tells."""
    if not long:
        from gantline.conformance import suite

        first = suite.scenarios()[:1]
        monkeypatch.setattr(suite, "scenarios", lambda: first)
        monkeypatch.setattr(suite, "_FAULTY_STORIES", ())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """At every change a quarter of the random examples and the small forms; see docs/design/rules-as-tests.md."""
    if config.getoption("--long"):
        return
    left_out = {item for item in items if item.get_closest_marker("long")} | cases_left_out(items) | tests_that_wait(config, items)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
    drawn_from = [item for item in items if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)]
    for test in {item.obj for item in drawn_from if item.path.parent.name not in ALL_EXAMPLES}:
        drawn = test._hypothesis_internal_use_settings
        fewer = max(min(FEWEST_EXAMPLES, drawn.max_examples), drawn.max_examples // SHARE_OF_EXAMPLES)
        test._hypothesis_internal_use_settings = settings(drawn, max_examples=fewer)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name the comparisons that could not be made: a green run without them says less."""
    skipped = [report for report in terminalreporter.getreports("skipped") if "shared/reference" in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} comparisons with the originals were not made: their results are not in ../shared/reference; "
            "recorded runs were compared instead (tests/records)",
            yellow=True,
        )
