"""The store in PostgreSQL keeps the promises that the file keeps, and a service runs on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.live.service.asking import cancel, started, succeed
from tests.live.service.conftest import Running, until
from tests.live.specs import replays
from tests.live.store_contract import StoreContract, job
from tests.system.postgres import Postgres

from gantline.core.errors import RefusedError
from gantline.live.service.home import Home, Options
from gantline.live.store import SqlStore, StoreError
from gantline.live.store.connection import LostStoreError


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


def cut_off(url: str) -> None:
    """The server ends the connection that holds the lock."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory'")


def test_a_lost_connection_is_made_again_with_its_lock(url: str) -> None:
    store = SqlStore.open(url)
    store.append([job("1")])
    cut_off(url)
    with pytest.raises(StoreError, match="cannot be written"):
        store.append([job("2")])
    store.append([job("3")])
    with pytest.raises(RefusedError, match="another service"):
        SqlStore.open(url)
    assert [one["id"] for one in store.jobs()] == ["1", "3"]
    store.close()


def test_who_lost_the_store_to_another_writes_no_more(url: str) -> None:
    first = SqlStore.open(url)
    first.append([job("1")])
    cut_off(url)
    second = SqlStore.open(url)  # the lock died with the connection
    second.append([job("3")])
    for _ in range(2):
        with pytest.raises(StoreError):
            first.append([job("4")])
    second.close()
    with pytest.raises(LostStoreError, match="another service has written"):
        first.append([job("4")])
    store = SqlStore.open(url, write=False)
    assert [one["id"] for one in store.jobs()] == ["1", "3"]
    store.close()
    first.close()


def test_a_transaction_whose_commit_was_not_answered_is_looked_up(url: str) -> None:
    """The connection is cut between the last statement and the commit, or after it: what is there counts."""
    store = SqlStore.open(url)
    store.append([job("1")])
    store.observe = lambda when: cut_off(url) if when == "before" else None
    with pytest.raises(StoreError):
        store.append([job("2")])
    store.observe = None
    store.append([job("3")])
    assert [one["id"] for one in store.jobs()] == ["1", "3"]
    with store._ready().begin() as whole:
        number = int(whole.connection.exec_driver_sql("select txid_current()").scalar() or 0)
    assert store._was_committed(number)
    store.close()


def test_a_service_goes_on_after_a_restart_of_the_server(tmp_path: Path) -> None:
    own = Postgres()
    try:
        url = own.database()
        running = Running(Options(Home(tmp_path / "home"), devices="cpu:2", store=url)).start()
        client = running.client()
        long = started(client)
        own.restart()

        def submitted() -> str:
            try:
                return str(client.submit(["true"])[0])
            except RefusedError:
                return ""

        assert client.wait(until(submitted, "the connection is made again"), timeout=120)[0]["state"] == "succeeded"
        cancel(client, long)
        with pytest.raises(RefusedError, match="another service"):
            SqlStore.open(url)
        running.stop()
        store = SqlStore.open(url, write=False)
        replays(store)
        store.close()
    finally:
        own.close()


def test_every_commit_waits_for_the_log(url: str) -> None:
    store = SqlStore.open(url)
    writer = store._connections.writer
    with writer.begin():
        assert writer.exec_driver_sql("show synchronous_commit").scalar() == "on"
        assert writer.exec_driver_sql("show fsync").scalar() == "on"
    store.close()


def test_a_service_on_postgresql_goes_on_after_a_restart(url: str, tmp_path: Path) -> None:
    options = Options(Home(tmp_path / "home"), devices="cpu:2", store=url)
    first = Running(options).start()
    client = first.client()
    (done,) = client.submit(["sh", "-c", "echo hello"])
    succeed(client, done)
    runs = started(client)
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


def test_a_server_that_was_restored_to_an_earlier_time_begins_another_life(server: Postgres, url: str, tmp_path: Path) -> None:
    """Numbers that were given out since are not given out again, and no folder of theirs is believed."""
    home = Home(tmp_path / "home")
    first = Running(Options(home, devices="cpu:2", store=url)).start()
    (done,) = first.client().submit(["true"])
    succeed(first.client(), done)
    first.stop()
    earlier = f"{url.rpartition('/')[2]}_earlier"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(f"create database {earlier} template {url.rpartition('/')[2]}")  # type: ignore[arg-type]
    second = Running(Options(home, store=url)).start()
    (lost,) = second.client().submit(["true"])
    succeed(second.client(), lost)
    second.stop()
    told: list[str] = []
    third = Running(Options(home, store=server.url(earlier)), told.append).start()
    client = third.client()
    assert any("another life of the store begins" in line for line in told), told
    assert client.job(done)["state"] == "succeeded"
    (new,) = client.submit(["sh", "-c", "echo ran"])
    assert int(new) > int(lost)
    succeed(client, new)
    assert "".join(client.logs(new)) == "ran\n"
    third.stop()
