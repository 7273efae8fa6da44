"""The service is away, or dies: what was acknowledged is there again, what still runs is adopted, what ended meanwhile is known."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.live.specs import ended, must_succeed, replays, running, shell, state, submit, until, until_running

from gantline.core.errors import RefusedError
from gantline.core.inputs import Action
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.runner import LocalRunner
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
            until(lambda: state(first, goes) == "succeeded")
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
        until(lambda: state(second, wide) == "pending", "it has lost its devices")
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
