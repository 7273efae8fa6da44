"""A live job ends when the losses that it reports say so: it saves, and has succeeded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.specs import must_succeed, replays, running, until

from gantline.core.errors import GantlineError, UsageError
from gantline.engine.ending import find_ending
from gantline.live.jobs.amounts import rule_of
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.progress import Losses
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.scheduler.setup import Setup
from gantline.live.store import SqlStore

FALLS = [2.0, 1.5, 1.0, 0.8, 0.6]
FLAT = [0.6, 0.6, 0.6]

# it leaves when it is asked to, but not before its result may be written
SAVES = 'trap "while [ ! -e go ]; do sleep 0.01; done; echo best > result; exit 143" TERM; echo ready > ready; while :; do sleep 0.01; done'


def trains(folder: Path, **more: object) -> object:
    return spec_of({"run": ["sh", "-c", SAVES], "workdir": str(folder), "checkpoint": {"grace": "200s"}, **more})


def report(scheduler: Scheduler, job: str, *losses: float) -> None:
    for loss in losses:
        scheduler.report(job, {"epoch": scheduler.view().jobs[job].epoch, "loss": loss})


def test_a_loss_that_has_stopped_falling_ends_the_job_as_one_that_succeeded(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, store=store, checkpoint_every=3) as scheduler:
        (job,) = scheduler.submit(trains(tmp_path, end_by="plateau:1%@3"))
        (behind,) = scheduler.submit(spec_of({"run": ["cat", "result"], "workdir": str(tmp_path), "after": f"ok:{job}"}))
        until(lambda: (tmp_path / "ready").exists() and scheduler.view().jobs[job].state == "running")
        report(scheduler, job, *FALLS, float("nan"), *FLAT[:2])
        assert scheduler.ask(lambda: scheduler.view().jobs[job].state) == "running", "two level reports and a NaN are no plateau of three"
        report(scheduler, job, FLAT[2])
        must_succeed(scheduler, job)
        told = scheduler.view().jobs[job]
        assert (told.reason, told.why) == ("loss", "was ended by its loss")
        assert told.stop, "a loop that asks the service is told to leave, too"
        assert scheduler.ask(lambda: scheduler.registry[behind].holds) == {"dependency"}, "the result is not there yet"
        (tmp_path / "go").touch()
        must_succeed(scheduler, behind)
        told = until(lambda: not scheduler.view().jobs[job].devices and scheduler.view().jobs[job])
        assert (told.state, told.exit_code, told.failures) == ("succeeded", 0, 0)
        (event,) = [one for one in store.events(job=job) if one["event"] == "finish"]
        assert (event["reason"], event["why"]) == ("loss", "plateau:1%@3: its last loss is 0.6")
    assert [line["input"] for _, line in store.journal(kind="finish")] == ["finish"]
    replays(store)
    with running(tmp_path, store=store) as scheduler:
        told = scheduler.view().jobs[job]
        assert (told.state, told.reason, told.why) == ("succeeded", "loss", "was ended by its loss")
        assert not store.aside()


def test_what_follows_a_job_that_still_saves_waits_over_a_restart_of_the_service(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    first = Scheduler(store, LocalRunner(tmp_path, "cpu:2"), "fifo")
    first.start()
    (job,) = first.submit(trains(tmp_path, end_by="target:0.5"))
    (behind,) = first.submit(spec_of({"run": ["cat", "result"], "workdir": str(tmp_path), "after": f"ok:{job}"}))
    until(lambda: (tmp_path / "ready").exists() and first.view().jobs[job].state == "running")
    report(first, job, 0.4)
    must_succeed(first, job)
    first.stop()
    with running(tmp_path, store=store) as second:
        assert second.view().jobs[job].devices, "its processes are there"
        assert second.ask(lambda: second.registry[behind].holds) == {"dependency"}
        (tmp_path / "go").touch()
        must_succeed(second, behind)
        assert (second.view().jobs[job].state, second.view().jobs[job].exit_code) == ("succeeded", 0)
    replays(store)


def test_the_rule_of_the_service_is_for_jobs_that_have_none(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with running(tmp_path, setup=Setup(end_by="target:0.5")) as scheduler:
        (ends,) = scheduler.submit(trains(tmp_path))
        (stays,) = scheduler.submit(trains(tmp_path, end_by="never"))
        until(lambda: all(scheduler.view().jobs[job].state == "running" for job in (ends, stays)))
        for job in (stays, ends):
            report(scheduler, job, 0.7, 0.4)
        must_succeed(scheduler, ends)
        assert scheduler.view().jobs[stays].state == "running"


def test_losses_begin_anew_with_each_start_and_go_on_over_a_change_in_place() -> None:
    """A job that goes on from an older checkpoint reports once more what it had reached: no plateau, it falls as before."""
    rule, losses = find_ending("plateau:0@2"), Losses()
    assert all(losses.received("a", 1, rule, loss, lambda epoch: False) for loss in (3.0, 2.0, 1.0))
    assert all(losses.received("a", 2, rule, loss, lambda epoch: False) for loss in (3.0, 2.0, 1.0))
    assert losses.received("a", 3, rule, 1.0, lambda epoch: epoch == 2)
    assert not losses.received("a", 3, rule, 1.0, lambda epoch: False)
    losses.forget("a")
    assert losses.received("a", 3, rule, 1.0, lambda epoch: False)


@pytest.mark.parametrize("rule", ["plateu:1%", "plateau:-1", "plateau:1%@0", "plateau:1%@10001", "target:nan", "target:", 5])
def test_a_rule_that_is_none_is_refused_before_anything_is_taken_in(tmp_path: Path, rule: str) -> None:
    with pytest.raises(UsageError, match="end_by"):
        trains(tmp_path, end_by=rule)
    if isinstance(rule, str):
        with pytest.raises(GantlineError):
            rule_of(rule)
