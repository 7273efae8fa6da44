"""The store in PostgreSQL keeps the promises that the file keeps, and a service runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.runtime.store_contract import StoreContract, job
from tests.service.conftest import Running, until
from tests.system.postgres import Postgres

from gantline.core.errors import RefusedError
from gantline.runtime.store import SqlStore, StoreError
from gantline.service.home import Home
from gantline.service.options import Options


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    found = Postgres()
    yield found
    found.close()


@pytest.fixture
def url(server: Postgres) -> str:
    return server.database()


class TestPostgresql(StoreContract):
    """All that every store promises."""


def test_whoever_loses_its_connection_writes_no_more(url: str, server: Postgres) -> None:
    first = SqlStore.open(url)
    first.append([job("1")])
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'")
    with pytest.raises(StoreError, match="cannot be written"):
        first.append([job("2")])
    with pytest.raises(StoreError, match="connection to the store is gone"):
        first.append([job("2")])
    second = SqlStore.open(url)  # the lock died with the connection
    second.append([job("3")])
    with pytest.raises(StoreError):
        first.append([job("4")])
    assert [one["id"] for one in second.jobs()] == ["1", "3"]
    first.close()
    second.close()


def test_every_commit_waits_for_the_log(url: str) -> None:
    store = SqlStore.open(url)
    writer = store._connections.writer
    assert writer is not None
    with writer.begin():
        assert writer.exec_driver_sql("show synchronous_commit").scalar() == "on"
        assert writer.exec_driver_sql("show fsync").scalar() == "on"
    store.close()


def test_a_service_on_postgresql_goes_on_after_a_restart(url: str, tmp_path: Path) -> None:
    options = Options(Home(tmp_path / "home"), devices="cpu:2", store=url)
    first = Running(options).start()
    client = first.client()
    (done,) = client.submit(["sh", "-c", "echo hello"])
    assert client.wait(done, timeout=120)[0]["state"] == "succeeded"
    (runs,) = client.submit(["sleep", "600"])
    until(lambda: client.job(runs)["state"] == "running")
    assert client.status()["store"] == "postgresql"
    with pytest.raises(RefusedError, match="another service"):
        SqlStore.open(url)
    first.stop(drain=False)
    second = Running(options).start()
    client = second.client()
    assert client.job(done)["state"] == "succeeded"
    assert client.job(runs)["state"] == "running"
    client.cancel(runs)
    second.stop()
    assert not (tmp_path / "home" / "gantline.sqlite").exists()
