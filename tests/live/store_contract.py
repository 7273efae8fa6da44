"""What every store promises, whichever database holds it."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest
from sqlalchemy import text

from gantline.core.errors import RefusedError
from gantline.live.store import QueueRow, SqlStore, StoreError, TokenRow
from gantline.live.store.connection import migrate
from gantline.live.store.records import HEAD, Entry, Store, metadata


def job(id: str, **more: Any) -> Entry:
    return Entry("job", {"id": id, **more})


def line(**body: Any) -> Entry:
    return Entry("journal", body)


def event(time: float, **body: Any) -> Entry:
    return Entry("event", {"time": time, **body})


class StoreContract:
    """Inherited by a class of tests whose fixture `url` names an empty database."""

    def test_what_was_written_is_there_after_a_restart(self, url: str) -> None:
        first = SqlStore.open(url)
        first.append([job("1", user="ana", spec={"run": ["a"]}), line(input="submit"), event(1.0, event="submitted", job="1")])
        first.append([line(plan=[], time=2.0), job("1", state="running", devices=[0])])
        with first.transaction() as write:
            write.queue(QueueRow("a", quota=8))
            write.queue(QueueRow("a", weight=2.0))
            write.queue(QueueRow("b"))
            write.drop_queue("b")
            write.remember("policy", {"name": "fifo"})
            write.remember("policy", {"name": "las"})
        created = first.created
        first.close()
        second = SqlStore.open(url)
        assert second.created == created
        whole = {"id": "1", "user": "ana", "spec": {"run": ["a"]}, "state": "running", "devices": [0]}
        assert second.job("1") == whole
        assert [*second.jobs()] == [whole]
        assert [*second.journal()] == [(1, {"input": "submit"}), (2, {"plan": [], "time": 2.0})]
        assert second.decisions() == [{"number": 2, "plan": [], "time": 2.0}]
        assert second.events() == [{"number": 1, "time": 1.0, "event": "submitted", "job": "1"}]
        assert second.queues() == [QueueRow("a", quota=math.inf, weight=2.0)]
        assert second.recall("policy") == {"name": "las"}
        assert second.recall("other", 3) == 3
        second.close()

    def test_it_is_the_store_that_the_scheduler_asks_for(self, url: str) -> None:
        store: Store = SqlStore.open(url)
        assert store.checkpoint() is None
        store.append([line(input="a"), line(input="b"), Entry("checkpoint", {"now": 5.0}), line(input="c")])
        assert store.checkpoint() == (2, {"now": 5.0})
        for now in range(6, 12):
            store.append([line(input="d"), Entry("checkpoint", {"now": now})])
        assert store.checkpoint() == (9, {"now": 11})
        assert isinstance(store, SqlStore)
        store.close()

    def test_thousands_at_once_are_read_as_they_were_written_and_leave_together(self, url: str) -> None:
        store = SqlStore.open(url)
        names = [str(number) for number in range(1, 1201)]
        store.append(
            [*(job(name, user="äna", state="failed", lines=['"', "%s"]) for name in names), *(event(1.0, job=name) for name in names)]
        )
        assert [one["id"] for one in store.jobs()] == names
        assert store.job("700") == {"id": "700", "user": "äna", "state": "failed", "lines": ['"', "%s"]}
        assert store.counts() == {"failed": 1200}
        assert [one["id"] for one in store.some_jobs(["7", "600"])] == ["7", "600"]
        gone = names[:1100]
        store.append([line(input="a"), Entry("checkpoint", {"now": 1}), Entry("archived", {"jobs": gone, "totals": {"jobs": len(gone)}})])
        assert [one["id"] for one in store.jobs()] == names[1100:]
        assert set(store.events_of(names)) == set(names[1100:])
        assert store.archived() == {"jobs": 1100}
        store.close()

    def test_compacting_leaves_what_the_newest_checkpoints_need(self, url: str) -> None:
        store = SqlStore.open(url)
        store.append([line(input="aside")])
        store.append([Entry("aside", {"number": 1, "why": "it is odd"})])
        for now in range(6):
            store.append([line(input="a"), Entry("checkpoint", {"now": now})])
        store.append([line(input="b")])
        store.compact()
        assert [saved["now"] for _, saved in store.checkpoints()] == [3, 4, 5]
        assert [number for number, _ in store.journal()] == [6, 7, 8]
        assert [one["number"] for one in store.aside()] == [1]
        store.close()

    def test_a_line_behind_checkpoints_that_cover_everything_keeps_its_place_when_the_store_is_compacted(self, url: str) -> None:
        store = SqlStore.open(url)
        store.append([line(input="a"), line(input="b")])
        for now in range(3):
            store.append([Entry("checkpoint", {"now": now})])
        store.compact()
        store.append([line(input="c")])
        saved = store.checkpoint()
        assert [body["input"] for _, body in store.journal(saved[0])] == ["c"]
        store.close()

    def test_entries_are_written_together_or_not_at_all(self, url: str) -> None:
        store = SqlStore.open(url)
        with pytest.raises(StoreError, match="cannot be written"):
            store.append([job("1", state="pending"), line(input="submit"), Entry("job", {"id": None})])
        assert [*store.jobs()] == []
        assert [*store.journal()] == []
        with pytest.raises(OSError, match="cannot be written"):  # as the scheduler knows it
            store.append([line(input="submit"), Entry("job", {"id": None})])
        store.append([job("3")])
        assert [one["id"] for one in store.jobs()] == ["3"]
        store.close()

    def test_a_second_writer_is_refused_and_a_reader_is_not(self, url: str) -> None:
        store = SqlStore.open(url)
        with pytest.raises(RefusedError, match="another service"):
            SqlStore.open(url)
        reader = SqlStore.open(url, write=False)
        store.append([job("1")])
        assert [one["id"] for one in reader.jobs()] == ["1"]
        with pytest.raises(RefusedError, match="opened for reading"):
            reader.append([job("2")])
        reader.close()
        store.close()
        SqlStore.open(url).close()

    def test_jobs_are_in_order_of_submission_and_counted_by_state(self, url: str) -> None:
        store = SqlStore.open(url)
        store.append([job(id, state="pending") for id in ("1", "2_9", "2_10", "3")])
        store.append([job("1", state="running")])
        assert [one["id"] for one in store.jobs()] == ["1", "2_9", "2_10", "3"]
        assert store.counts() == {"running": 1, "pending": 3}
        assert store.job("5") is None
        store.close()

    def test_events_of_a_job_and_the_newest_of_all(self, url: str) -> None:
        store = SqlStore.open(url)
        store.append([event(float(k), event="e", job=str(k % 2)) for k in range(10)])
        assert [one["time"] for one in store.events(job="1")] == [1.0, 3.0, 5.0, 7.0, 9.0]
        assert [one["time"] for one in store.events(limit=2, newest=True)] == [8.0, 9.0]
        assert [one["time"] for one in store.events(after=8)] == [8.0, 9.0]
        store.close()

    def test_tokens_are_found_by_their_hash_until_they_are_revoked(self, url: str) -> None:
        store = SqlStore.open(url)
        with store.transaction() as write:
            write.token(TokenRow("t1", "h1", "ana", "viewer", 1.0))
        assert store.token("h1") == TokenRow("t1", "h1", "ana", "viewer", 1.0)
        assert store.token("h2") is None
        with store.transaction() as write:
            assert write.revoke("t1", 5.0)
            assert not write.revoke("t1", 6.0)
            assert not write.revoke("t2", 6.0)
        assert [one.revoked for one in store.tokens()] == [5.0]
        store.close()

    def test_a_long_journal_is_read_in_order(self, url: str) -> None:
        store = SqlStore.open(url)
        store.append([line(input="k", k=k) for k in range(2100)])
        assert [body["k"] for _, body in store.journal()] == [*range(2100)]
        assert [body["k"] for _, body in store.journal(after=2098)] == [2098, 2099]
        store.close()

    def test_threads_read_while_one_writes(self, url: str) -> None:
        store = SqlStore.open(url)
        seen: list[int] = []

        def read() -> None:
            seen.extend(len([*store.jobs()]) for _ in range(10))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for number in range(10):
            store.append([job(f"{number}_1"), job(f"{number}_2")])
        for reader in readers:
            reader.join()
        assert len(seen) == 30
        assert all(count % 2 == 0 for count in seen), "nobody sees half a transaction"
        store.close()

    def test_the_migrations_make_the_tables_that_the_program_knows(self, url: str) -> None:
        from alembic.autogenerate import compare_metadata
        from alembic.migration import MigrationContext

        store = SqlStore.open(url)
        with store._connections.reading.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
            assert connection.execute(text("select version_num from alembic_version")).scalar() == HEAD
        store.close()

    def test_a_store_of_a_newer_program_is_refused(self, url: str) -> None:
        store = SqlStore.open(url)
        writer = store._connections.writer
        with writer.begin():
            writer.execute(text("update alembic_version set version_num = '9999'"))
            with pytest.raises(RefusedError, match="newer Gantline"):
                migrate(writer)
        store.close()
        with pytest.raises(RefusedError, match="newer Gantline"):
            SqlStore.open(url)
