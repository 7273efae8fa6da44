"""What every store promises, whichever database holds it."""

from __future__ import annotations

import math
import threading

import pytest
from sqlalchemy import text

from gantline.core.errors import RefusedError
from gantline.runtime.store import JobRecord, QueueRecord, Request, Store, StoreError, TokenRecord
from gantline.runtime.store.migrations.migrate import migrate
from gantline.runtime.store.schema import HEAD, metadata


def job(id: str, number: int, user: str = "ana", **more: object) -> JobRecord:
    return JobRecord(id, number, f"job-{id}", user, {"run": ["true"]}, submitted=1.0, **more)  # type: ignore[arg-type]


class StoreContract:
    """Inherited by a class of tests whose fixture `url` names an empty database."""

    def test_what_was_written_is_there_after_a_restart(self, url: str) -> None:
        first = Store.open(url)
        with first.transaction() as write:
            assert write.next_number() == 1
            write.job(job("1", 1, queue="a/b", gpus=4))
            entry = write.journal(1.0, {"input": "submit", "time": 1.0})
            write.event(1.0, "submitted", job="1", user="ana", gpus=4)
            write.decision(2.0, entry, "fifo", 0.01, "abc", started=["1"])
            write.queue(QueueRecord("a", quota=8))
            write.queue(QueueRecord("a", quota=math.inf, weight=2.0))
        created = first.created
        first.close()
        second = Store.open(url)
        assert second.created == created
        assert second.job("1") == job("1", 1, queue="a/b", gpus=4)
        assert [(one.number, one.body["input"]) for one in second.journal()] == [(entry, "submit")]
        assert second.events()[0].body == {"gpus": 4}
        assert second.decisions()[0].body == {"started": ["1"]}
        assert second.queues() == [QueueRecord("a", quota=math.inf, weight=2.0)]
        with second.transaction() as write:
            assert write.next_number() == 2, "numbers are never used twice"
        second.close()

    def test_a_transaction_is_whole_or_nothing(self, url: str) -> None:
        store = Store.open(url)

        def half(fail: bool) -> None:
            with store.transaction() as write:
                write.job(job("1", 1))
                write.journal(1.0, {})
                if fail:
                    raise ZeroDivisionError
                write.job(job("1", 1))

        with pytest.raises(ZeroDivisionError):
            half(True)
        with pytest.raises(StoreError, match="cannot be written"):
            half(False)
        assert store.jobs() == []
        assert list(store.journal()) == []
        with store.transaction() as write:
            write.job(job("3", 3))
        assert [one.id for one in store.jobs()] == ["3"]
        store.close()

    def test_a_second_writer_is_refused_and_a_reader_is_not(self, url: str) -> None:
        store = Store.open(url)
        with pytest.raises(RefusedError, match="another service"):
            Store.open(url)
        reader = Store.open(url, write=False)
        with store.transaction() as write:
            write.job(job("1", 1))
        assert [one.id for one in reader.jobs()] == ["1"]
        with pytest.raises(RefusedError, match="opened for reading"), reader.transaction():
            pass
        reader.close()
        store.close()
        Store.open(url).close()

    def test_the_history_has_a_line_for_every_change_of_state(self, url: str) -> None:
        store = Store.open(url)
        with store.transaction() as write:
            write.job(job("1", 1))
            write.change("1", 2.0, state="running", reason="none", devices=[0, 1], started=2.0)
            write.change("1", 3.0, progress={"done": 5})
            write.change("1", 4.0, state="running", reason="none")
            write.change("1", 5.0, state="completed", reason="finished", exit_code=0)
        told = [(line.time, line.state, line.reason) for line in store.history("1")]
        assert told == [(1.0, "pending", "arrived"), (2.0, "running", "none"), (5.0, "completed", "finished")]
        found = store.job("1")
        assert found is not None
        assert (found.devices, found.progress, found.exit_code, found.started) == ([0, 1], {"done": 5}, 0, 2.0)
        store.close()

    def test_jobs_are_found_by_what_is_known_of_them(self, url: str) -> None:
        store = Store.open(url)
        with store.transaction() as write:
            for number, (user, state) in enumerate([("ana", "running"), ("bo", "pending"), ("ana", "pending")], start=1):
                write.job(job(str(number), number, user, state=state))
            for task in (10, 9):
                write.job(job(f"4_{task}", 4, task=task))
        assert [one.id for one in store.jobs()] == ["1", "2", "3", "4_9", "4_10"]
        assert [one.id for one in store.jobs(user="ana", states=["pending"], limit=1)] == ["3"]
        assert [one.id for one in store.jobs(newest=True, limit=1)] == ["4_10"]
        assert [one.id for one in store.jobs(numbers=[4])] == ["4_9", "4_10"]
        assert [one.id for one in store.jobs(name="job-2")] == ["2"]
        assert store.jobs(ids=[]) == []
        assert store.counts() == {"running": 1, "pending": 4}
        assert store.job("5") is None
        store.close()

    def test_a_request_is_remembered_with_its_answer(self, url: str) -> None:
        store = Store.open(url)
        with store.transaction() as write:
            write.request(Request("r-1", "ana", "d", {"ids": ["1"]}, 10.0))
        known = store.request("r-1", "ana")
        assert known is not None
        assert known.answer == {"ids": ["1"]}
        assert store.request("r-1", "bo") is None, "keys are each user's own"

        def again() -> None:
            with store.transaction() as write:
                write.job(job("1", 1))
                write.request(Request("r-1", "ana", "d", {}, 11.0))

        with pytest.raises(StoreError):
            again()
        assert store.jobs() == []
        with store.transaction() as write:
            write.forget_requests(10.5)
        assert store.request("r-1", "ana") is None
        store.close()

    def test_tokens_are_found_by_their_hash_until_they_are_revoked(self, url: str) -> None:
        store = Store.open(url)
        with store.transaction() as write:
            write.token(TokenRecord("t1", "h1", "ana", "viewer", 1.0))
        assert store.token("h1") == TokenRecord("t1", "h1", "ana", "viewer", 1.0)
        assert store.token("h2") is None
        with store.transaction() as write:
            assert write.revoke("t1", 5.0)
            assert not write.revoke("t1", 6.0)
            assert not write.revoke("t2", 6.0)
        assert [one.revoked for one in store.tokens()] == [5.0]
        store.close()

    def test_the_newest_checkpoints_are_kept(self, url: str) -> None:
        store = Store.open(url)
        assert store.checkpoint() is None
        for entry in (3, 9, 20, 21, 21):
            with store.transaction() as write:
                write.checkpoint(entry, float(entry), {"entry": entry}, bytes([entry]))
        newest = store.checkpoint()
        assert newest is not None
        assert (newest.entry, newest.head, newest.arrays) == (21, {"entry": 21}, bytes([21]))
        store.close()

    def test_a_long_journal_is_read_in_order(self, url: str) -> None:
        store = Store.open(url)
        with store.transaction() as write:
            numbers = [write.journal(float(k), {"k": k}) for k in range(2100)]
            assert write.newest_entry() == numbers[-1]
        assert [one.body["k"] for one in store.journal()] == [*range(2100)]
        assert [one.body["k"] for one in store.journal(after=numbers[2097])] == [2098, 2099]
        assert store.newest_entry() == numbers[-1]
        store.close()

    def test_threads_read_while_one_writes(self, url: str) -> None:
        store = Store.open(url)
        seen: list[int] = []

        def read() -> None:
            seen.extend(len(store.jobs()) for _ in range(10))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(1, 11):
            with store.transaction() as write:
                write.job(job(f"{number}_1", number))
                write.job(job(f"{number}_2", number))
        for reader in readers:
            reader.join()
        assert len(seen) == 30
        assert all(count % 2 == 0 for count in seen), "nobody sees half a transaction"
        store.close()

    def test_the_migrations_make_the_tables_that_the_program_knows(self, url: str) -> None:
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        store = Store.open(url)
        with store._connections.reading.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
            assert connection.execute(text("select version_num from alembic_version")).scalar() == HEAD
        store.close()

    def test_a_store_of_a_newer_program_is_refused(self, url: str) -> None:
        store = Store.open(url)
        writer = store._connections.writer
        assert writer is not None
        with writer.begin():
            writer.execute(text("update alembic_version set version_num = '9999'"))
            with pytest.raises(RefusedError, match="newer Gantline"):
                migrate(writer)
        store.close()
        with pytest.raises(RefusedError, match="newer Gantline"):
            Store.open(url)
