"""Bad days: a short one in every run of the suite; ten minutes under every policy and on every store with ``make chaos``."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.chaos import POLICIES, Day
from tests.live.lives import told
from tests.system.postgres import Postgres, is_installed

SHORT = 5.0


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seconds = metafunc.config.getoption("--chaos-seconds")
    stores = ("sqlite", *(("postgresql",) if is_installed() else ()))
    days = list(itertools.product(POLICIES, stores)) if seconds else [("las", "sqlite")]
    each = seconds / len(days) or SHORT
    metafunc.parametrize(("policy", "kind", "seconds"), [(*day, each) for day in days], ids=["-".join(day) for day in days])


def test_a_bad_day(tmp_path: Path, request: pytest.FixtureRequest, policy: str, kind: str, seconds: float) -> None:
    store = request.getfixturevalue("postgres").database() if kind == "postgresql" else ""
    day = Day(tmp_path, policy, seed=POLICIES.index(policy) + 1, store=store)
    day.live(seconds)
    day.check()
    assert day.known, f"nothing was submitted: {day.refused}"
    print(f"{policy} on {kind}: {dict(day.happened)}, {len(day.known)} jobs, {len(told(tmp_path, 'began'))} lives")
