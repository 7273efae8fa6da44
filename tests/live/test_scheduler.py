"""The scheduler with real processes: jobs start, end, wait, are stopped, fail and are tried again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.live.specs import ended, must_succeed, running, shell, state, submit, until, until_running

from gantline.core.columns import Job
from gantline.core.errors import NotFoundError, RefusedError, UnreachableError
from gantline.core.inputs import Action, NodeEvent
from gantline.core.phases import Phase
from gantline.live.jobs.launch import Launch
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.execution import LocalKeepers
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.runner_events import RunnerEvents
from gantline.live.scheduler.endings import Endings
from gantline.live.store import SqlStore
from gantline.live.wall_time import Message


def test_jobs_run_and_end_with_their_exit_codes(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        (good,) = scheduler.submit(shell("echo hello from $GANTLINE_JOB_ID"), "ann")
        (bad,) = scheduler.submit(shell("echo oh no >&2; exit 3"), "ann")
        assert ended(scheduler, good, bad) == ["succeeded", "failed"]
        jobs = scheduler.view().jobs
        assert jobs[good].exit_code == 0
        assert (jobs[bad].exit_code, jobs[bad].reason, jobs[bad].lines) == (3, "exit-code", ("oh no",))
        assert (tmp_path / "jobs" / good / "1" / "log").read_text() == f"hello from {good}\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_who_waits_for_an_answer_is_told_at_once_when_the_service_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is being answered when the thread dies, two have asked behind it, one comes too late."""
    with running(tmp_path) as scheduler:
        dies, posted, told = threading.Event(), threading.Semaphore(0), []
        post = scheduler.loop.messages.post

        def die() -> None:
            dies.wait()
            raise SystemExit

        def noted(message: Message) -> None:
            post(message)
            posted.release()

        monkeypatch.setattr(scheduler.loop.messages, "post", noted)

        def ask(question: Callable[[], object]) -> None:
            with pytest.raises(UnreachableError) as caught:
                question()
            told.append(str(caught.value))

        questions: list[Callable[[], object]] = [partial(scheduler.ask, die), scheduler.snapshot, partial(scheduler.submit, shell("true"))]
        asking = [threading.Thread(target=ask, args=(question,)) for question in questions]
        for thread in asking:
            thread.start()
            posted.acquire()
        dies.set()
        for thread in asking:
            thread.join()
        assert len(told) == 3
        assert all("the service has ended before it could answer" in words for words in told)
        ask(scheduler.snapshot)
        assert "not running" in told[-1]


def test_who_has_an_answer_sees_another_state_than_before_though_no_step_has_been_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forecasts are shared by the version of the state: one from before the request must not serve whoever has made it."""
    with running(tmp_path) as scheduler:
        first = submit(scheduler, "sleep 1000", gpus=2)
        second = submit(scheduler, "true")
        until(lambda: state(scheduler, first) == "running" and scheduler.view().jobs[second].reason == "resources")
        t, look, may_look = scheduler.loop.state.tables, scheduler.observer.look, threading.Event()
        row, rows = t.ids.index(second), len(t.ids)

        def late() -> None:
            """What the requests have changed in the tables is not looked at before it may be."""
            if t.I[Job.PHASE, row] == Phase.CANCELLED or len(t.ids) > rows:
                may_look.wait()
            look()

        monkeypatch.setattr(scheduler.observer, "look", late)
        before = scheduler.view().standing.version
        third = submit(scheduler, "true")
        submitted = scheduler.view()
        may_look.set()
        assert third in submitted.jobs
        assert submitted.standing.version > before
        until(lambda: scheduler.view().jobs[third].reason == "blocked")
        rows += 1
        may_look.clear()
        before = scheduler.view().standing.version
        scheduler.request([second], Action.CANCEL)
        after = scheduler.view().standing.version
        may_look.set()
        assert after > before


def test_a_job_larger_than_the_machine_is_refused_and_nothing_is_queued(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:2") as scheduler:
        with pytest.raises(RefusedError, match="more devices than the cluster has"):
            scheduler.submit(shell("true", gpus=3))
        assert not scheduler.view().jobs


def test_the_same_request_twice_is_one_submission(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        once = scheduler.submit(shell("true"), "ann", "r1")
        assert scheduler.submit(shell("true"), "ann", "r1") == once
        assert scheduler.submit(shell("true"), "bob", "r1") != once


def test_a_node_that_is_lost_while_a_job_is_being_started_there_ends_that_job_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job is known, and has no folder yet."""
    starts, may_start, begin = threading.Event(), threading.Event(), LocalKeepers.begin

    def late(keepers: LocalKeepers, one: Incarnation, launch: Launch) -> None:
        starts.set()
        may_start.wait()
        begin(keepers, one, launch)

    monkeypatch.setattr(LocalKeepers, "begin", late)
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, f"echo $GANTLINE_EPOCH >> {tmp_path}/began; sleep 1000")
        starts.wait()
        try:
            scheduler.node(NodeEvent(0.0, "cpu", "down"))
        finally:
            may_start.set()
        first = scheduler.runner.known[job]
        until(lambda: first.over, "it ends where it was started")
        assert scheduler.alive
        scheduler.node(NodeEvent(0.0, "cpu", "up"))
        until(lambda: (tmp_path / "began").exists() and (tmp_path / "began").read_text().endswith("2\n"), "it starts again")


def test_cancel_ends_the_process_and_frees_its_device(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        first = submit(scheduler, "sleep 1000")
        second = submit(scheduler, "true")
        until_running(scheduler, first)
        scheduler.request([first], Action.CANCEL)
        assert ended(scheduler, first, second) == ["cancelled", "succeeded"]
        with pytest.raises(NotFoundError):
            scheduler.request(["77"], Action.CANCEL)


def test_a_job_that_ignores_the_signal_is_killed_after_its_grace(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        stubborn = submit(scheduler, "trap '' TERM; while true; do sleep 0.05; done", grace=0.2)
        until_running(scheduler, stubborn)
        scheduler.request([stubborn], Action.CANCEL)
        after = submit(scheduler, "true")
        must_succeed(scheduler, after)


def test_a_crash_is_tried_again_and_a_crash_loop_ends(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        mark = tmp_path / "mark"
        second_time = submit(scheduler, f"[ -e {mark} ] || {{ touch {mark}; exit 1; }}", retries=2, backoff=0.05)
        never = submit(scheduler, "echo try $RESTART_COUNT; exit 9", retries=2, backoff=0.05)
        assert ended(scheduler, second_time, never) == ["succeeded", "failed"]
        view = scheduler.view().jobs[never]
        assert view.failures == 3
        assert view.lines == ("try 2",)


def test_a_time_limit_ends_a_job(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        slow = submit(scheduler, "sleep 1000", time_limit=0.3)
        assert ended(scheduler, slow) == ["timeout"]
        assert scheduler.view().jobs[slow].reason == "time-limit"


def test_a_job_that_was_stopped_has_what_is_left_of_its_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is of all incarnations together. The alarms tell how long each may run: no test waits for them."""
    alarms: list[float] = []
    with running(tmp_path) as scheduler:
        post, clock, limit = scheduler.loop.messages.post_at, scheduler.clock, 10_000.0

        def noted(at: float, message: Message) -> None:
            left = at - clock.now()
            alarms.extend([left] if left > 100.0 else [])  # others are about what is seen every second
            post(at, message)

        monkeypatch.setattr(scheduler.loop.messages, "post_at", noted)
        (job,) = scheduler.submit(spec_of({"run": ["sleep", "1000"], "limits": {"time": limit}}))
        until(lambda: state(scheduler, job) == "running" and alarms)
        until(lambda: scheduler.view().jobs[job].service > 0.5)
        scheduler.request([job], Action.HOLD)
        until(lambda: state(scheduler, job) == "held" and not scheduler.view().jobs[job].devices)
        had = scheduler.view().jobs[job].service
        scheduler.request([job], Action.RELEASE)
        until(lambda: len(alarms) > 1)
        assert alarms[1] <= limit - had, "it gets no limit anew"
        scheduler.requests.change([job], {"time_limit": 2 * limit})
        until(lambda: len(alarms) > 2)
        assert alarms[2] <= 2 * limit - had, "nor by a change of it"


def test_an_ending_that_is_told_twice_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keeper repeats its last word where it cannot know that it was heard, in the same breath or later."""
    receive, late = Endings.received_from_runner, list[RunnerEvents]()

    def repeated(self: Endings, events: RunnerEvents) -> None:
        ends = tuple(one for one in events.reports if one[1] is not None)
        receive(self, replace(events, reports=(*events.reports, *ends)))
        late.extend([RunnerEvents(reports=ends)] if ends else [])

    monkeypatch.setattr(Endings, "received_from_runner", repeated)
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, store=store) as scheduler:
        job = submit(scheduler, "exit 3", retries=2, backoff=0.02)
        assert ended(scheduler, job) == ["failed"]
        for events in late:
            receive(scheduler.endings, events)
        scheduler.ask(lambda: None)
        view = scheduler.view().jobs[job]
        assert (view.failures, view.epoch, view.state) == (3, 3, "failed")
        events = [one for one in store.events_of([job])[job] if one["event"] == "failed"]
        assert [one["epoch"] for one in events] == [1, 2, 3]
    store.close()


def test_dependencies_wait_and_fail_with_what_they_wait_for(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        go = tmp_path / "go"
        first = submit(scheduler, f"while [ ! -e {go} ]; do sleep 0.02; done; exit 1")
        fine = submit(scheduler, "true", after=((first, "failed"),))
        vain = submit(scheduler, "true", after=((first, "ok"),))
        assert until(lambda: scheduler.view().jobs[fine].reason == "dependency")
        go.touch()
        assert ended(scheduler, first, fine, vain) == ["failed", "succeeded", "failed"]
        assert scheduler.view().jobs[vain].reason == "dependency-failed"


def test_what_waits_for_a_job_to_fail_runs_when_that_has_exceeded_its_time_limit(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        slow = submit(scheduler, "sleep 1000", time_limit=0.3)
        clean = submit(scheduler, "true", after=((slow, "failed"),))
        assert ended(scheduler, slow, clean) == ["timeout", "succeeded"]


def test_a_job_on_hold_says_so_when_what_it_waited_for_has_ended(tmp_path: Path) -> None:
    go = tmp_path / "go"
    with running(tmp_path) as scheduler:
        first = submit(scheduler, f"while [ ! -e {go} ]; do sleep 0.02; done")
        waits = submit(scheduler, "true", after=((first, "ended"),))
        until(lambda: scheduler.view().jobs[waits].reason == "dependency")
        scheduler.request([waits], Action.HOLD)
        assert scheduler.view().jobs[waits].reason == "dependency"
        go.touch()
        ended(scheduler, first)
        until(lambda: scheduler.view().jobs[waits].reason == "held")
        scheduler.request([waits], Action.RELEASE)
        must_succeed(scheduler, waits)


def test_an_array_runs_so_many_at_once(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:4") as scheduler:
        ids = scheduler.submit(shell("echo $ARRAY_INDEX > $GANTLINE_CHECKPOINT/index", count=5, parallel=2))
        assert ids == ["1_0", "1_1", "1_2", "1_3", "1_4"]
        must_succeed(scheduler, *ids)
        assert (tmp_path / "jobs" / "1_3" / "checkpoint" / "index").read_text() == "3\n"


def test_the_policy_may_change_while_it_runs(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        scheduler.use("srtf")
        assert scheduler.view().policy == "srtf" or until(lambda: scheduler.view().policy == "srtf")
        job = submit(scheduler, "true")
        must_succeed(scheduler, job)
        with pytest.raises(NotFoundError):
            scheduler.use("nonsense")
        assert scheduler.snapshot()["kind"] == "snapshot"


def test_what_an_operator_changes_is_seen_by_who_looks_next(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        for policy, kind, up in (("las", "drain", False), ("fifo", "up", True)) * 3:
            scheduler.node(NodeEvent(scheduler.clock.now(), "cpu", kind))
            assert {device.up for device in scheduler.view().devices} == {up}
            scheduler.use(policy)
            assert scheduler.view().policy == policy
