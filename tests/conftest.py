"""Options of the whole suite."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# How fast the machine is, or how busy, is nothing that a test may depend on.
# Examples are the same in every run: what fails here fails everywhere; `--hypothesis-profile=search` looks for new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("any-speed", settings.get_profile("search"), derandomize=True)
settings.load_profile("any-speed")
os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # our systems are small, and threads that wait for work on busy cores cost more than they do
# Users of tests have no accounts: where root runs them, their jobs are root's, but for the tests that are about accounts.
os.environ.setdefault("GANTLINE_RUN_AS", "service")
# Neither this process nor those that tests start translate every module anew, also where images ask Python to leave no files.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--chaos-seconds", type=float, default=0.0, help="how long faults are thrown at services, in all; 0: a short story")
    parser.addoption("--stories", type=int, default=240, help="how many seeded stories of the faulty executor to tell")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Stories come in pieces of forty, so that workers share them and a failure names its piece."""
    if "story_seeds" in metafunc.fixturenames:
        total, piece = metafunc.config.getoption("--stories"), 40
        pieces = [range(first, min(first + piece, total)) for first in range(0, total, piece)]
        metafunc.parametrize("story_seeds", pieces, ids=[f"{p.start}-{p.stop - 1}" for p in pieces])
