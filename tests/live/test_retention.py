"""Jobs that ended long ago leave the store for the archive: nothing is lost on the way, and nothing that stays grows with them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from tests.live.specs import end_all, ended, must_succeed, replays, shell, until

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.archive import Archive
from gantline.live.scheduler.retention import Keep, Retention
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import Entry, MemoryStore
from gantline.live.store.store import SqlStore

FILE = "gantline.sqlite"


@contextmanager
def service(home: Path, **keep: float) -> Iterator[Retention]:
    """A scheduler with a store in a file, and what archives its jobs when it is asked to."""
    store = SqlStore.open(home / FILE)
    scheduler = Scheduler(store, LocalRunner(home, "cpu:4"), "fifo", checkpoint_every=8)
    scheduler.start()
    try:
        yield Retention(scheduler, store, Archive(home / "archive"), Keep(**keep))  # type: ignore[arg-type]
    finally:
        scheduler.stop()
        store.close()
        end_all(home)


def run(scheduler: Scheduler, count: int, line: str = "true") -> list[str]:
    """Jobs from their submission to their end."""
    jobs = [scheduler.submit(shell(line), "ann")[0] for _ in range(count)]
    ended(scheduler, *jobs)
    until(lambda: not any(scheduler.view().jobs[job].devices for job in jobs), "their processes are gone")
    return jobs


def everywhere(home: Path) -> tuple[set[str], set[str]]:
    """Ids in the store, and in the archive."""
    store = SqlStore.open(home / FILE, write=False)
    try:
        return {job["id"] for job in store.jobs()}, set(Archive(home / "archive").frame()["id"])
    finally:
        store.close()


def test_the_oldest_leave_with_their_events_and_the_newest_stay(tmp_path: Path) -> None:
    with service(tmp_path, jobs=2) as retention:
        jobs = run(retention.scheduler, 5, "echo hello; exit 3")
        assert retention.look() == 3
        stay = set(retention.scheduler.view().jobs)
        assert len(stay) == 2
        assert stay == {job["id"] for job in retention.store.jobs()} == set(retention.scheduler.registry.jobs)
        gone = retention.archive.jobs(jobs)
        assert set(gone) == set(jobs) - stay
        view, record, history = next(iter(gone.values()))
        assert (view.state, view.exit_code, view.user, view.is_archived) == ("failed", 3, "ann", True)
        assert record["launch"]["command"] == ["echo hello; exit 3"]
        assert history[0]["event"] == "submitted"
        assert not retention.store.events_of([view.id])
        assert retention.scheduler.archived["states"] == {"failed": 3}
        assert retention.look() == 0, "once is enough"


def test_ids_go_on_after_a_restart_and_the_record_replays_with_jobs_from_the_archive(tmp_path: Path) -> None:
    with service(tmp_path, jobs=1) as retention:
        run(retention.scheduler, 3)
        (last,) = run(retention.scheduler, 1)
        retention.keep = Keep(age=1e-9)
        assert retention.look() == 4
        assert not retention.scheduler.view().jobs
    with service(tmp_path) as retention:
        assert retention.scheduler.set_aside == []
        assert run(retention.scheduler, 1) == [str(int(last) + 1)]
        assert retention.scheduler.archived["jobs"] == 4
    replayed = replays(tmp_path / FILE, archive=Archive(tmp_path / "archive"))
    assert replayed.decisions > 0
    assert replayed.before == 0
    assert replayed.left_out == 0


def test_a_store_that_was_compacted_replays_from_its_oldest_checkpoint(tmp_path: Path) -> None:
    with service(tmp_path, jobs=1) as retention:
        for _ in range(4):
            run(retention.scheduler, 3)
            retention.look()
        lines = len(list(retention.store.journal()))
        retention.look(compact=True)
        assert len(list(retention.store.journal())) < lines
        run(retention.scheduler, 2)
        before = {job: view.state for job, view in retention.scheduler.view().jobs.items()}
    replayed = replays(tmp_path / FILE, archive=Archive(tmp_path / "archive"))
    assert replayed.before > 0
    with service(tmp_path) as retention:
        assert {job: view.state for job, view in retention.scheduler.view().jobs.items()} == before


def test_compacting_gives_room_back_to_the_file_system(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / FILE)
    store.append([Entry("event", {"time": 0.0, "job": str(number), "event": "x" * 500}) for number in range(20_000)])
    before = store.size()
    store.append([Entry("archived", {"jobs": [str(number) for number in range(20_000)], "totals": {"jobs": 20_000}})])
    store.compact()
    assert (store.size() or 0) < before / 10
    assert store.archived() == {"jobs": 20_000}
    store.close()


def test_an_array_leaves_whole_and_what_others_wait_for_stays(tmp_path: Path) -> None:
    with service(tmp_path, age=1e-9) as retention:
        scheduler = retention.scheduler
        tasks = scheduler.submit(shell(f"[ $ARRAY_INDEX -lt 2 ] || while [ ! -e {tmp_path}/go ]; do sleep 0.02; done", count=3), "ann")
        (first,) = run(scheduler, 1)
        (second,) = scheduler.submit(shell("true", after=((first, "ok"), (tasks[2], "ok"))), "ann")
        ended(scheduler, *tasks[:2])
        assert retention.look() == 0
        (tmp_path / "go").touch()
        must_succeed(scheduler, second)
        until(lambda: not any(view.devices for view in scheduler.view().jobs.values()))
        assert retention.look() == 5
        assert {record["launch"].get("array_index", -1) for record, _ in retention.archive.records()} == {-1, 0, 1, 2}


def test_for_an_old_job_that_must_stay_no_newer_one_leaves(tmp_path: Path) -> None:
    with service(tmp_path, jobs=2) as retention:
        scheduler = retention.scheduler
        (first,) = run(scheduler, 1)
        (runs,) = scheduler.submit(shell("sleep 1000"), "ann")
        (waits,) = scheduler.submit(shell("true", after=((first, "ok"), (runs, "ok"))), "ann")
        (_, *newest) = [run(scheduler, 1)[0] for _ in range(3)]
        assert retention.look() == 1, "the second alone: the first is waited for"
        assert set(scheduler.view().jobs) == {first, runs, waits, *newest}
        assert retention.look() == 0


def test_an_array_stays_as_long_as_one_of_its_tasks_is_among_the_newest(tmp_path: Path) -> None:
    with service(tmp_path, jobs=2) as retention:
        scheduler = retention.scheduler
        tasks = scheduler.submit(shell("true", count=3), "ann")
        ended(scheduler, *tasks)
        run(scheduler, 1)
        assert retention.look() == 0
        run(scheduler, 1)
        assert retention.look() == 3
        assert set(retention.archive.jobs(tasks)) == set(tasks)


@pytest.mark.parametrize("ends_again", [False, True])
def test_a_job_that_comes_back_while_it_is_being_archived_stays(tmp_path: Path, ends_again: bool) -> None:
    with service(tmp_path, age=1e-9) as retention:
        scheduler, add = retention.scheduler, retention.archive.add
        (job,) = scheduler.submit(spec_of({"run": ["test", "-e", str(tmp_path / "go")]}), "ann")
        assert ended(scheduler, job) == ["failed"]

        def interrupted(*told: Any) -> None:
            add(*told)
            (tmp_path / "go").touch()
            scheduler.request([job], Action.REQUEUE)
            if ends_again:
                until(lambda: ended(scheduler, job) == ["succeeded"] and not scheduler.view().jobs[job].devices)

        retention.archive.add = interrupted  # type: ignore[method-assign]
        until(lambda: retention.look() and (tmp_path / "go").exists())
        retention.archive.add = add  # type: ignore[method-assign]
        until(lambda: retention.look() or job not in scheduler.view().jobs)
        assert retention.archive.jobs([job])[job][0].state == "succeeded", "the newest row counts"
        assert len(retention.archive) == 1


# when a service is killed: the archive is written, the store is about to forget, the store has forgotten
MOMENTS = ("written", "before", "after")


def be_killed(home: Path, moment: str) -> None:
    """A life that ends by kill -9 while three jobs are archived."""
    with service(home, age=1e-9) as retention:
        run(retention.scheduler, 3)
        add = retention.archive.add

        def added(*told: Any) -> None:
            add(*told)
            if moment == "written":
                os.kill(os.getpid(), signal.SIGKILL)
            retention.store.observe = lambda when: os.kill(os.getpid(), signal.SIGKILL) if when == moment else None

        retention.archive.add = added  # type: ignore[method-assign]
        retention.look()


def be_killed_at_every_moment(home: Path) -> None:
    """Each in a process and a home of its own."""
    Scheduler(MemoryStore(), LocalRunner(home, "cpu:4"), "fifo").rehearse()  # once for all of them
    for moment in MOMENTS:
        (home / moment).mkdir()
        child = os.fork()
        if child == 0:
            be_killed(home / moment, moment)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, moment


def test_nothing_is_lost_by_a_kill_in_the_middle(tmp_path: Path) -> None:
    lives = f"from tests.live.test_retention import Path, be_killed_at_every_moment as be; be(Path({str(tmp_path)!r}))"
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", lives], cwd=root, check=True)  # this process must not be forked: Parquet's library has threads
    for moment in MOMENTS:
        home = tmp_path / moment
        store, archive = everywhere(home)
        assert archive == {"1", "2", "3"}, moment
        assert store == (set() if moment == "after" else {"1", "2", "3"}), moment
        with service(home, age=1e-9) as retention:
            retention.look()
            assert run(retention.scheduler, 1) == ["4"]
            retention.look()
        assert everywhere(home) == (set(), {"1", "2", "3", "4"}), moment


def test_folders_go_by_age_and_only_when_the_job_is_archived(tmp_path: Path) -> None:
    with service(tmp_path, jobs=1) as retention:
        jobs = run(retention.scheduler, 2, "echo out")
        assert retention.look() == 1
        assert all((tmp_path / "jobs" / job).is_dir() for job in jobs), "many jobs are no reason to remove what they wrote"
        retention.keep = Keep(age=1e-9)
        assert retention.look() == 1
        until(lambda: not retention.look() and not any((tmp_path / "jobs" / job).exists() for job in jobs))
        (tmp_path / "jobs" / "777").mkdir()
        retention.look()
        assert (tmp_path / "jobs" / "777").is_dir(), "nobody knows whose it is"


def test_a_damaged_part_is_named_and_jobs_stay_where_they_are(tmp_path: Path) -> None:
    with service(tmp_path, age=1e-9) as retention:
        (tmp_path / "archive").mkdir()
        (tmp_path / "archive" / "jobs-000001.parquet").write_bytes(b"no parquet")
        (job,) = run(retention.scheduler, 1)
        with pytest.raises(RefusedError, match="jobs-000001"):
            retention.look()
        assert job in retention.scheduler.view().jobs


# --- what does not grow -------------------------------------------------------------------------------------------------------
def test_nothing_in_memory_is_kept_of_jobs_that_have_left(tmp_path: Path) -> None:
    with service(tmp_path, jobs=3) as retention:
        scheduler = retention.scheduler
        retention.start()
        jobs = [scheduler.submit(shell("true"), "ann")[0] for _ in range(20)]
        until(lambda: len(retention.archive) == 17, "the crowd has left by itself")
        until(lambda: all(view.finished and not view.devices for view in scheduler.view().jobs.values()))
        retention.close()
        kept = set(scheduler.registry.jobs)
        assert kept | set(retention.archive.frame()["id"]) == set(jobs)
        assert set(scheduler.view().jobs) == kept
        assert set(scheduler.runner.known.newest) <= kept
        assert not scheduler.runner.known.live
        held = (scheduler.observer._sizes, scheduler.endings._limited, scheduler.progress._last, scheduler.registry.waiting_for)
        assert not any(held)


def test_jobs_whose_processes_leave_late_are_archived_when_they_have_left(tmp_path: Path) -> None:
    """Each alone, the last when the others are in the archive: no other job ends after these, which would ring the bell for them."""
    with service(tmp_path, jobs=0) as retention:
        scheduler = retention.scheduler
        retention.start()
        jobs = [scheduler.submit(shell(_saves_until(tmp_path / go), grace=120.0, cwd=str(tmp_path)), "ann")[0] for go in "abc"]
        until(lambda: len(list(tmp_path.glob("*.in"))) == 3, "they run, and cannot be stopped at once")
        scheduler.request(jobs, Action.CANCEL)
        ended(scheduler, *jobs)
        assert retention.look() == 0, "their processes still save"
        for left, go in enumerate("abc", 1):
            (tmp_path / go).touch()
            until(lambda left=left: len(retention.archive) == left, "it has left by itself")  # type: ignore[misc]
        retention.close()


def _saves_until(go: Path) -> str:
    return f"trap '' TERM; touch $$.in; until test -e {go}; do sleep 0.02; done"


def test_what_is_too_few_to_ring_leaves_when_the_thread_looks_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten stay, and one more is not worth a part of the archive at once; where nothing else ends it must not stay for ever."""
    monkeypatch.setattr("gantline.live.scheduler.retention._MOST", 0.01)
    with service(tmp_path, jobs=10) as retention:
        retention.start()
        for _ in range(11):
            retention.scheduler.submit(shell("true"), "ann")
        until(lambda: len(retention.archive) == 1, "one has left")
        retention.close()


def test_what_cannot_be_archived_is_tried_again_with_a_pause_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Asking which jobs are due rings the bell as long as they cannot leave: that must not make the pause void."""
    with service(tmp_path, jobs=0) as retention:
        pauses: list[float] = []
        add, wait = retention.archive.add, retention._closes.wait

        def full(*told: Any) -> None:
            raise OSError(28, "No space left on device")

        def pause(seconds: float) -> bool:
            pauses.append(seconds)
            if len(pauses) == 3:
                retention.archive.add = add  # type: ignore[method-assign]
            return wait(0.0)

        retention.archive.add = full  # type: ignore[method-assign]
        monkeypatch.setattr(retention._closes, "wait", pause)
        run(retention.scheduler, 2)
        retention.start()
        until(lambda: len(retention.archive) == 2 and not retention.failure, "they leave when there is room")
        retention.close()
        assert pauses == [1.0] * 3
        assert [record.message for record in caplog.records if "could not be archived" in record.message] == [
            "jobs could not be archived: OSError: [Errno 28] No space left on device"
        ]


def test_no_question_to_the_store_reads_a_table_from_end_to_end(tmp_path: Path) -> None:
    """A tiny job costs what it changes, however many have ended: every statement of its life uses an index."""
    with service(tmp_path) as retention:
        run(retention.scheduler, 3)
        said: dict[str, object] = {}
        connections = retention.store._connections
        for engine in (connections.reading, connections._writing_engine):
            event.listen(engine, "before_cursor_execute", lambda c, cursor, told, values, *_: said.setdefault(told, values))
        run(retention.scheduler, 2)
        retention.scheduler.submit(shell("true", count=3), "ann")
        with connections.reading.connect() as look:
            plans = {
                told: [str(row[3]) for row in look.exec_driver_sql(f"EXPLAIN QUERY PLAN {told}", _one(values))]
                for told, values in list(said.items())
                if told.split()[0] in ("SELECT", "UPDATE", "DELETE")
            }
        assert any("FROM jobs" in told for told in plans)
        scans = {told: plan for told, plan in plans.items() if any(step.startswith("SCAN") and "INDEX" not in step for step in plan)}
        assert not {told: plan for told, plan in scans.items() if "checkpoints" not in told}, "of checkpoints there are four"


def _one(values: object) -> object:
    return values[0] if isinstance(values, list) else values


def test_a_restart_reads_the_folders_of_jobs_that_may_still_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service(tmp_path, jobs=1) as retention:
        run(retention.scheduler, 4)
        retention.look()
    read: list[str] = []
    adopt = Incarnation.adopt
    monkeypatch.setattr(Incarnation, "adopt", lambda one: (read.append(one.job), adopt(one))[1])
    with service(tmp_path) as retention:
        assert read == [], "three are in the archive, one has ended"
        (tmp_path / "jobs" / "777" / "1").mkdir(parents=True)
    with service(tmp_path) as retention:
        assert "777" in read, "of a job that nobody knows it is not known whether it runs"
