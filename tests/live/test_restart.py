"""The service is away, or dies: what was acknowledged is there again, what still runs is adopted, what ended meanwhile is known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.live.pretend import Life, Machines, PretendRunner
from tests.live.specs import becomes, ended, must_succeed, replays, running, shell, state, submit, until, until_running

from gantline.core.cluster import Cluster
from gantline.core.errors import NotFoundError, RefusedError
from gantline.core.inputs import Action
from gantline.core.windows import AdvanceWindow
from gantline.engine.executor import News, Order
from gantline.lab.report.service_run import run_of
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler import observer as restarts
from gantline.live.scheduler.observer import Restarts
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.setup import Setup
from gantline.live.store import SqlStore
from gantline.live.store.records import MemoryStore
from gantline.live.wall_time import Message
from gantline.traces.files.python_file import GivenCode


def begin(home: Path, store: MemoryStore, devices: str = "cpu:2", **more: object) -> Scheduler:
    scheduler = Scheduler(store, LocalRunner(home, devices), "fifo", **more)  # type: ignore[arg-type]
    scheduler.start()
    return scheduler


RESTLESS = """
from dataclasses import dataclass
from gantline.core.policy import OrderPolicy

@dataclass(frozen=True)
class Restless(OrderPolicy):
    name = "restless"

    def key(self, snapshot):
        return snapshot.jobs.arrival
"""


def waiting_for(path: Path) -> str:
    return f"while [ ! -e {path} ]; do sleep 0.02; done"


@pytest.mark.parametrize("every", [3, 10_000])  # from a checkpoint, and from the journal alone
def test_what_still_runs_is_adopted(tmp_path: Path, every: int) -> None:
    store, go = MemoryStore(), tmp_path / "go"
    first = begin(tmp_path, store, checkpoint_every=every)
    running_job = submit(first, waiting_for(go))
    next_job = submit(first, "true", gpus=2)
    held_job = submit(first, "true")
    first.request([held_job], Action.HOLD)
    until(lambda: state(first, running_job) == "running" and state(first, held_job) == "held")
    epoch = first.view().jobs[running_job].epoch
    first.stop()
    with running(tmp_path, store=store, checkpoint_every=every) as second:
        assert second.view().jobs[running_job].epoch == epoch
        assert state(second, held_job) == "held"
        assert state(second, next_job) == "pending"
        go.touch()
        must_succeed(second, running_job, next_job)
        assert second.view().jobs[running_job].epoch == epoch
        second.request([held_job], Action.RELEASE)
        must_succeed(second, held_job)
        assert second.submit(shell("true")) == ["4"]


def test_what_a_day_without_a_service_has_missed_is_decided_once(tmp_path: Path) -> None:
    """A policy that is asked every second while a job waits; then no service runs for a day."""
    go, file = tmp_path / "go", tmp_path / "restless.py"
    file.write_text(RESTLESS)
    store, policy = SqlStore.open(tmp_path / "store.sqlite"), f"{file}:Restless"
    first = Scheduler(store, LocalRunner(tmp_path, "cpu:1"), policy, setup=Setup(round=1.0))
    first.start()
    goes, waits = (submit(first, line, estimate=1e6) for line in (waiting_for(go), "true"))
    until(lambda: state(first, goes) == "running" and state(first, waits) == "pending")
    first.stop()
    before = first.loop.state.decision
    with running(tmp_path, "cpu:1", policy, store=store, wall=lambda: time.time() + 86_400.0) as second:
        until(lambda: second.loop.state.decision > before)
        assert second.clock.now() > 86_400.0
        assert second.ask(lambda: second.loop.state.decision) - before < 60
        go.touch()
        must_succeed(second, goes, waits)
    replays(store, code=GivenCode((policy,)))


def test_after_a_long_absence_orders_are_repeated_once(tmp_path: Path) -> None:
    store, go = MemoryStore(), tmp_path / "go"
    first = begin(tmp_path, store)
    job = submit(first, waiting_for(go))
    until_running(first, job)
    first.stop()
    a_week_later = time.time() + 7 * 86_400.0
    with running(tmp_path, store=store, wall=lambda: a_week_later) as second:
        until(lambda: second.view().counters["orders"] >= 1)
        go.touch()
        must_succeed(second, job)
        assert second.view().counters["orders"] <= 4
        assert len([line for _, line in store.journal() if line.get("input") == "report"]) <= 8


def test_a_policy_that_cannot_read_what_it_remembered_begins_anew(tmp_path: Path) -> None:
    """Its file was changed while the service was away; it would lose every turn."""
    text = "from gantline import Plan, Policy\nclass Counts(Policy):\n    def decide(self, snapshot):\n"
    text += (
        "        seen = (snapshot.memory or {'KEY': 0})['KEY']\n        return Plan.rank(snapshot.jobs.arrival, memory={'KEY': seen + 1})\n"
    )
    store, go, file = MemoryStore(), tmp_path / "go", tmp_path / "counts.py"
    file.write_text(text.replace("KEY", "old"))
    first = Scheduler(store, LocalRunner(tmp_path, "cpu:1"), str(file), checkpoint_every=1)
    first.start()
    jobs = [submit(first, line) for line in (waiting_for(go), "true")]
    until(lambda: store.saved and "memory" in store.saved[1]["snapshot"])
    first.stop()
    file.write_text(text.replace("KEY", "new"))
    with running(tmp_path, "cpu:1", str(file), store, checkpoint_every=1) as second:
        assert "it begins anew" in second.view().incidents[0]
        go.touch()
        must_succeed(second, *jobs)
        assert len(second.view().incidents) == 1


def test_a_job_that_ended_before_the_last_checkpoint_comes_back_under_its_id(tmp_path: Path) -> None:
    """The engine has forgotten it: it is submitted anew, with an epoch behind those that it had."""
    store = MemoryStore()
    first = begin(tmp_path, store, checkpoint_every=1)
    (bad,) = first.submit(spec_of({"run": ["sh", "-c", "[ $GANTLINE_EPOCH -gt 1 ]"], "labels": {"a": "b"}}), "ann")
    (good,) = first.submit(spec_of({"run": ["true"]}))
    assert ended(first, bad, good) == ["failed", "succeeded"]
    ended(first, submit(first, "true"))  # and once more, so that a checkpoint covers all of it
    first.stop()
    with running(tmp_path, store=store, checkpoint_every=1) as second:
        assert second.view().jobs[bad].row < 0
        with pytest.raises(RefusedError, match=f"job '{good}' had ended: succeeded at"):
            second.request([bad, good], Action.REQUEUE)
        assert state(second, bad) == "failed", "all of them, or none"
        second.request([bad], Action.REQUEUE)
        must_succeed(second, bad)
        job = second.view().jobs[bad]
        assert (job.user, job.epoch, dict(job.labels)) == ("ann", 2, {"a": "b"})


def test_what_ended_meanwhile_is_known(tmp_path: Path) -> None:
    store, go = MemoryStore(), tmp_path / "go"
    first = begin(tmp_path, store)
    good = submit(first, waiting_for(go))
    bad = submit(first, f"{waiting_for(go)}; exit 5")
    until_running(first, good, bad)
    first.stop()
    go.touch()
    until(lambda: all(one.is_over for one in LocalRunner(tmp_path, "cpu:2").adopt()))
    with running(tmp_path, store=store) as second:
        assert ended(second, good, bad) == ["succeeded", "failed"]
        assert second.view().jobs[bad].exit_code == 5


def test_a_job_whose_keeper_was_killed_is_ended_and_started_again(tmp_path: Path) -> None:
    import os
    import signal

    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, "echo $$ > $GANTLINE_CHECKPOINT/pid.$GANTLINE_EPOCH; [ $GANTLINE_EPOCH -gt 1 ] || sleep 1000", backoff=0.05)
        until(lambda: state(scheduler, job) == "running" and (tmp_path / "jobs" / job / "checkpoint" / "pid.1").exists())
        keeper = scheduler.runner.known[job].state["pid"]
        os.kill(keeper, signal.SIGKILL)
        must_succeed(scheduler, job)
        child = int((tmp_path / "jobs" / job / "checkpoint" / "pid.1").read_text())
        assert not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_a_job_that_ends_while_all_are_told_to_stop_does_not_keep_the_service_from_draining(tmp_path: Path) -> None:
    """It ends after it was found running and before the request to stop it arrives."""
    store = MemoryStore()
    first = begin(tmp_path, store, "cpu:2")
    goes, stays = (submit(first, line) for line in (waiting_for(tmp_path / "go"), "sleep 1000"))
    until(lambda: {state(first, job) for job in (goes, stays)} == {"running"})
    post = first.thread.post

    def post_late(message: Message) -> None:
        if message.alone and message.open is not None:  # the request to stop
            (tmp_path / "go").touch()
            becomes(first, goes, "succeeded")
        post(message)

    first.thread.post = post_late  # type: ignore[method-assign]
    first.stop(drain=True)
    assert all(one.is_over for one in LocalRunner(tmp_path, "cpu:2").adopt())


def test_devices_that_are_gone_after_a_restart_are_down_and_new_ones_join(tmp_path: Path) -> None:
    store = MemoryStore()
    first = begin(tmp_path, store, "cpu:2")
    wide = submit(first, "[ $GANTLINE_EPOCH -gt 1 ] && exit 0; sleep 1000", gpus=2)
    until_running(first, wide)
    first.stop()
    with running(tmp_path, "cpu:1,cpu-fast:1", "smallest", store=store) as second:
        shown = [("cpu~1:0", False), ("cpu~1:1", False), ("cpu:0", True), ("cpu-fast:0", True)]
        until(lambda: [(one.name, one.up) for one in second.view().devices] == shown)
        becomes(second, wide, "pending")
        small = submit(second, "echo $GANTLINE_DEVICES")
        must_succeed(second, small)
    with running(tmp_path, "cpu:2", "smallest", store=store) as third:
        must_succeed(third, wide)
        until(lambda: [one.up for one in third.view().devices] == [True, True, False, False])


def test_other_rules_in_the_next_life(tmp_path: Path) -> None:
    """What is given anew holds from then on, what runs goes on, and either life replays."""
    store, go = SqlStore.open(tmp_path / "store.sqlite"), tmp_path / "go"
    first = begin(tmp_path, store, "cpu:3")  # type: ignore[arg-type]
    job = submit(first, waiting_for(go), gpus=2)
    until_running(first, job)
    first.stop()
    with running(tmp_path, "cpu:3", store=store, anew={"placement": "consolidated", "round": 0.2}) as second:
        assert second.setup.placement == "consolidated"
        assert second.loop.state.regime.round == 0.2
        assert state(second, job) == "running"
        go.touch()
        ended(second, job, submit(second, "true", gpus=3))
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", store=store) as third:
        assert third.setup.round == 0.2  # as last time
    replays(store)
    store.close()


# A job that starts again and again without progress is an incident, once; one that gets on is none.


def starts_again(scheduler: Scheduler, job: str, times: int) -> None:
    for _ in range(times):
        until_running(scheduler, job)
        epoch = scheduler.view().jobs[job].epoch
        scheduler.request([job], Action.REQUEUE)
        until(lambda epoch=epoch: scheduler.view().jobs[job].epoch > epoch)
    until_running(scheduler, job)


def test_the_third_restart_in_ten_minutes_without_progress_is_an_incident(tmp_path: Path) -> None:
    store = MemoryStore()
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        job = submit(scheduler, "sleep 600")
        starts_again(scheduler, job, 2)
        assert not scheduler.view().incidents
        starts_again(scheduler, job, 2)
        (incident,) = scheduler.view().incidents
        assert f"job {job} has restarted 3 times in 10 minutes" in incident
        assert scheduler.view().counters["stuck"] == 1
        assert [event["job"] for event in store.event_log if event["event"] == "restarts"] == [job]
        scheduler.request([job], Action.CANCEL)
        until(lambda: scheduler.view().counters["stuck"] == 0)


def test_a_job_that_goes_on_from_what_it_has_saved_is_none(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1") as scheduler:
        job = submit(scheduler, "trap 'exit 15' TERM; while true; do sleep 0.02; done", resumes=True)
        starts_again(scheduler, job, 4)
        assert not scheduler.view().incidents
        scheduler.request([job], Action.CANCEL)


@pytest.mark.parametrize(
    ("life", "told"),
    [
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 0, 0, 20), (4, 0, 0, 30)], [4]),
        ([(1, 0, 0, 0), (2, 0, 0, 10), (2, 0, 0, 15), (2, 0, 0, 16), (3, 0, 0, 20)], []),  # orders that are repeated
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 5, 0, 20), (4, 5, 0, 30), (5, 5, 0, 40)], []),  # it has saved in between
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 0, 7, 20), (4, 0, 7, 30), (5, 0, 7, 40), (6, 0, 7, 50)], [6]),  # it has reported, and no more
        ([(1, 0, 0, 0), (2, 0, 0, 10), (3, 0, 0, 20), (4, 0, 0, 11 + restarts.WITHIN)], []),  # seldom
        ([(1, 0, 0, 0), (2, 0, 0, 1), (3, 0, 0, 2), (4, 0, 0, 3), (5, 5, 0, 5), (6, 5, 0, 6), (7, 5, 0, 7), (8, 5, 0, 8)], [4, 8]),
    ],
)  # fmt: skip
def test_what_counts(life: list[tuple[int, float, float, float]], told: list[int]) -> None:
    """Epochs with the saved and the reported work, and the time at which they began."""
    found = Restarts()
    assert [epoch for epoch, saved, reported, now in life if found.starts("1", epoch, saved, reported, now)] == told


# Jobs that have ended before the service has looked at them: where they ran, and for how long, is recorded all the same.


class Instant(PretendRunner):
    """Jobs that end as soon as they begin: the scheduler receives both reports before it has time to look."""

    def _start(self, job: str, order: Order, now: float) -> Life:
        life = super()._start(job, order, now)
        self._tell(life)
        life.over, life.exit = News.FINISHED, 0
        return life


def test_a_job_that_is_over_at_once_has_held_its_devices(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    machines = Machines()
    machines.add("a")
    machines.add("b")
    scheduler = Scheduler(store, Instant(machines), "fifo")
    scheduler.start()
    jobs = [submit(scheduler, "true", gpus=2), submit(scheduler, "true", gpus=1)]
    until(lambda: [state(scheduler, job) for job in jobs] == ["succeeded"] * 2)
    scheduler.stop()
    events = store.events_of(jobs)
    run = run_of([(record, events[record["id"]]) for record in store.jobs()], Cluster(tuple(machines.nodes.values())))
    assert run.jobs["state"].to_list() == ["completed", "completed"]
    assert run.allocations["gpus"].to_list() == [2, 1]
    assert run.jobs["gpu_seconds"].min() > 0  # type: ignore[operator]
    assert run.allocations["start"].to_list() == run.jobs["first_start"].to_list()
    store.close()


# Windows on wall time: written down, kept over a restart, and folded again to the same plans.


@pytest.mark.parametrize("every", [3, 10_000], ids=["checkpoints", "journal"])
@pytest.mark.parametrize("policy", ["srtf", "equal-share"])
def test_a_window_survives_a_restart_and_the_past_gives_the_same_plans(tmp_path: Path, policy: str, every: int) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", policy, store=store, checkpoint_every=every) as scheduler:
        wide = submit(scheduler, "sleep 600", gpus=3)
        until_running(scheduler, wide)
        soon = scheduler.clock.now() + 0.3
        window = scheduler.reserve(AdvanceWindow(soon, soon + 3600.0, "demo", gpus=2, users=("ann",)))
        assert len(window.places) == 2
        until(lambda: state(scheduler, wide) == "pending" and scheduler.view().jobs[wide].reason == "window")
        (hers,) = scheduler.submit(shell("sleep 600", gpus=2), "ann")
        small = submit(scheduler, "sleep 600")
        until(lambda: {state(scheduler, hers), state(scheduler, small)} == {"running"})
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:3", None, store=store, checkpoint_every=every) as scheduler:  # type: ignore[arg-type]
        assert [one.name for one in scheduler.view().windows] == ["demo"]
        assert set(scheduler.view().jobs[hers].devices) == set(window.places)
        with pytest.raises(RefusedError, match="'demo' already"):
            scheduler.reserve(AdvanceWindow(soon, soon + 9.0, "demo", gpus=1))
        with pytest.raises(NotFoundError, match=r"no window 'dmeo'.*did you mean 'demo'"):
            scheduler.unreserve("dmeo")
        scheduler.unreserve("demo")
        assert not scheduler.view().windows
        assert not any(device.windows for device in scheduler.view().devices)
    store.close()
    found = replays(tmp_path / "store.sqlite")
    assert found.decisions >= 3
