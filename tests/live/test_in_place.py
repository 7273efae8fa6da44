"""Real processes that are changed while they run: turns by suspension, other devices without a stop."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.live.mps_stand_in import ControlProgram
from tests.live.specs import Spec, ended, must_succeed, replays, running, state, submit, until

import gantline
from gantline.core.errors import RefusedError
from gantline.core.grant import Grant
from gantline.core.inputs import Action
from gantline.core.plan import Assignment, Mode
from gantline.engine.executor import Order, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.local.devices import declared
from gantline.live.runners.local.incarnation import Incarnation
from gantline.live.runners.local.isolation import Groups
from gantline.live.runners.local.keeper import PERIOD, is_on, share_out
from gantline.live.runners.local.orders import Writer, terms_of
from gantline.live.runners.local.slices import Mps
from gantline.live.runners.runner_context import Task
from gantline.live.store import SqlStore

POLICIES = Path(__file__).parents[1] / "engine" / "assigning.py"

STEPS = """
cd $GANTLINE_CHECKPOINT
i=$(cat step 2>/dev/null || echo 0)
while [ $i -lt 40 ]; do i=$((i + 1)); sleep 0.03; echo $i > next; mv next step; done
"""

FOLLOWS = """
seen=none; touch $GANTLINE_CHECKPOINT/up
while [ ! -e $GANTLINE_CHECKPOINT/go ]; do
  sleep 0.03
  if [ -e $GANTLINE_FOLDER/grant.json ]; then
    now=$(sed 's/.*"epoch": \\([0-9]*\\).*/\\1/' $GANTLINE_FOLDER/grant.json)
    [ "$now" = "$seen" ] || { seen=$now; echo $now > $GANTLINE_FOLDER/switched; }
  fi
done
echo $GANTLINE_EPOCH $seen > $GANTLINE_CHECKPOINT/ended
"""


def test_whose_turn_is_over_stands_still_and_goes_on(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:2", f"{POLICIES}:Rota", settings={"pace": 0.5}) as scheduler:
        ids = [submit(scheduler, STEPS, resumes=True) for _ in range(3)]
        until(lambda: any(state(scheduler, job) == "suspended" for job in ids), "nobody was suspended")
        must_succeed(scheduler, *ids)


def test_a_job_that_can_goes_on_with_other_devices(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:3", f"{POLICIES}:AsAsked") as scheduler:
        job = submit(scheduler, FOLLOWS, gpus=3, min_gpus=1, max_gpus=3, changes=("devices",), resumes=True)
        until((tmp_path / "jobs" / job / "checkpoint" / "up").exists, "it runs")
        until(lambda: scheduler.ask(lambda: [gang.started for gang in scheduler.loop.reconciler.live.values()]) == [True], "that is known")
        scheduler.request([job], Action.RESIZE, gpus=2)
        until(lambda: scheduler.view().jobs[job].resizes, "it has switched")
        (tmp_path / "jobs" / job / "checkpoint" / "go").touch()
        must_succeed(scheduler, job)
        began, last = (tmp_path / "jobs" / job / "checkpoint" / "ended").read_text().split()
        assert began == "1", "it was never stopped"
        assert int(last) > 1, "and has switched to a later grant"
        assert scheduler.view().counters["resizes"] == scheduler.view().jobs[job].resizes == 1
        assert sorted(path.name for path in (tmp_path / "jobs" / job).glob("[0-9]*")) == ["1"]


def test_what_a_trial_saves_is_gone_when_the_job_begins_again(tmp_path: Path) -> None:
    line = "cd $GANTLINE_CHECKPOINT; [ -e been ] && exit 3; touch been; [ $GANTLINE_EPOCH -gt 1 ] && exit 0; sleep 1000"
    with running(tmp_path, "cpu:1", f"{POLICIES}:Tries", settings={"trial": 1.0}) as scheduler:
        ended(scheduler, submit(scheduler, "true"))  # the first start of a process takes longer than the trial
        job = submit(scheduler, line, resumes=True)
        must_succeed(scheduler, job)
        assert (tmp_path / "jobs" / job / "checkpoint" / "been").exists()
        assert not (tmp_path / "jobs" / job / "1" / "checkpoint").exists()


TRAINS = """
import time
from gantline import train
job = train.join()
job.keep()
seen = []
for _ in job.steps(10**9):
    time.sleep(0.02)
    if job.gpus not in seen:
        seen.append(job.gpus)
        (job.folder / f'has{job.gpus}').touch()
    if len(seen) == 3:
        break
(job.folder / 'seen').write_text(f'{job.member.restarts} {len(job.member.devices) == job.gpus} {seen[0] != seen[1]}')
"""


def test_a_training_loop_hears_of_its_devices_without_a_stop(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:3", f"{POLICIES}:AsAsked") as scheduler:
        env = {"PYTHONPATH": str(Path(gantline.__file__).parents[1])}
        launch = Launch((sys.executable, "-S", "-c", TRAINS), env=env, changes=("devices",), resumes=True)
        (job,) = scheduler.submit(Spec(launch, job={"gpus": 3, "min_gpus": 1, "max_gpus": 3}))
        for size in (2, 1):
            until((tmp_path / "jobs" / job / "checkpoint" / f"has{size + 1}").exists, f"it has {size + 1}")
            scheduler.request([job], Action.RESIZE, gpus=size)
        must_succeed(scheduler, job)
        assert (tmp_path / "jobs" / job / "checkpoint" / "seen").read_text() == "0 True True"
        assert sorted(path.name for path in (tmp_path / "jobs" / job).glob("[0-9]*")) == ["1"]


TERMS = """
import time
from gantline import train
job = train.join()
seen = []
job.on_terms(lambda it: seen.append(it.terms))
for _ in job.steps(10**9):
    time.sleep(0.02)
    if seen:
        break
(job.folder / 'seen').write_text(f'{job.member.epoch} {seen[0].cpus} {seen[0].memory_cap} {seen[0].offset}')
"""


def test_a_training_loop_hears_of_other_cpus_a_cap_and_a_shift_without_a_stop(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1", f"{POLICIES}:Shifts", settings={"later": 0.5}) as scheduler:
        env = {"PYTHONPATH": str(Path(gantline.__file__).parents[1])}
        (job,) = scheduler.submit(Spec(Launch((sys.executable, "-S", "-c", TERMS), env=env), job={"gpus": 1}))
        must_succeed(scheduler, job)
        assert (tmp_path / "jobs" / job / "checkpoint" / "seen").read_text() == "1 0.5 24.0 0.25"


def test_a_job_is_told_of_the_storage_bandwidth_that_its_plan_gives_it() -> None:
    order = Order(Verb.START, 0, 1, grant=Grant((Assignment(0, storage=90.0),)))
    assert terms_of(order) == {"storage": 90.0}


# Jobs that need a part of a device: together on it, in turns or side by side.


def test_turns_fill_the_period_and_never_overlap() -> None:
    assert share_out({"7": 0.5}) == {"7": None}
    turns = share_out({"a": 0.25, "b": 0.5})
    assert turns == {"a": (0.0, pytest.approx(1 / 3)), "b": (pytest.approx(1 / 3), 1.0)}
    for k in range(100):
        now = 17.0 + PERIOD * k / 100
        on = {job: is_on(turn, now) for job, turn in turns.items() if turn is not None}
        assert sum(it for it, _ in on.values()) == 1
        for it, left in on.values():
            assert 0 < left <= PERIOD
            assert is_on(turns["a" if on["a"] == (it, left) else "b"] or (), now + left + 1e-9)[0] is not it


COUNTS = "i=0; while :; do i=$((i + 1)); echo $i > $GANTLINE_CHECKPOINT/next; mv $GANTLINE_CHECKPOINT/next $GANTLINE_CHECKPOINT/count; done"


def test_two_jobs_of_half_a_device_run_on_it_in_turns(tmp_path: Path) -> None:
    spec = spec_of({"run": COUNTS, "shell": True, "resources": {"accelerators": "cpu:1", "share": {"mode": "time", "fraction": 0.5}}}, "")
    with running(tmp_path, "cpu:1", "sharing") as scheduler:
        jobs = [scheduler.submit(spec)[0] for _ in range(3)]

        def states() -> list[str]:
            return [scheduler.view().jobs[job].state for job in jobs]

        until(lambda: states() == ["running", "running", "pending"], "two at once, the third waits")
        known = [scheduler.runner.known[job] for job in jobs[:2]]
        until(lambda: [one.order.get("turn") for one in known] == [[0.0, 0.5], [0.5, 1.0]], "turns")
        for one in known:
            until(lambda one=one: stands_still(one), f"job {one.job} stands still while the other has its turn")
            before = count(one)
            until(lambda one=one, before=before: count(one) > before, f"job {one.job} gets on")
        scheduler.request(jobs[:1], Action.CANCEL)
        until(lambda: states()[1:] == ["running", "running"], "the third comes in")
        scheduler.request(jobs[2:], Action.CANCEL)
        until(lambda: known[1].order.get("turn") is None, "who is alone has all of it")


def stands_still(one: Incarnation) -> bool:
    """Whether its process is stopped by a signal just now."""
    pid = one.state["ranks"][0]["pid"]
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def count(one: Incarnation) -> int:
    file = one.folder.parent / "checkpoint" / "count"
    return int(file.read_text()) if file.exists() else 0


def test_what_a_share_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    machine, mps = declared("h200:1,cpu:1"), Mps(tmp_path)
    writer = Writer(tmp_path, "", machine, Groups(), mps, lambda: machine.cluster)

    def told(share: str, device: int, part: float = 0.25, mode: Mode = Mode.INTERLEAVE, fraction: float = 1.0) -> tuple[str | None, float]:
        grant = Grant((Assignment(0, group=0, mode=mode, fraction=fraction),), shared=True)
        task, one = Task("7", Launch(("true",), share=share, part=part)), Incarnation("7", 1, tmp_path / "jobs" / "7" / "1")
        order = writer.order(Order(Verb.START, 0, 1, (device,), grant=grant), task, one)
        return order["env"].get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"), order["part"]

    assert told("mps", 0) == (None, 0.25), "no such service: in turns"
    (tmp_path / "bin").mkdir()
    ControlProgram(tmp_path / "bin")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    request.addfinalizer(mps.quit)
    assert told("mps", 0) == ("25", 0.0)
    assert told("time", 0) == (None, 0.25)
    assert told("mps", 1) == (None, 0.25), "CPU slots are shared in turns"
    assert told("mps", 0, mode=Mode.EXCLUSIVE) == (None, 0.0), "a policy that does not share gave it the whole device"
    assert told("", 0, 1.0, Mode.SPACE, 0.5) == ("50", 0.0), "a policy that packs jobs needs no word of theirs"
    assert told("", 1, 1.0, Mode.SPACE, 0.5) == (None, 0.0)


# The terms of jobs that wait are changed: in the journal and in the registry together, so that the next life knows them.


def test_a_change_of_one_task_outlives_a_restart_and_is_replayed(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        blocker = submit(scheduler, "sleep 1000")
        until(lambda: scheduler.view().jobs[blocker].state == "running")
        first, second, third = scheduler.submit(spec_of({"run": ["true"], "name": "sweep", "array": "0-2", "limits": {"time": 60}}))
        for task, name in ((first, "one"), (second, "two")):
            scheduler.requests.change([task], {"priority": "high", "time_limit": "2h", "name": name})
        version = scheduler.view().standing.version
        scheduler.requests.change([second], {"estimate": "5m"})
        assert scheduler.view().standing.version > version, "forecasts do not hold any more"
    store.close()
    store = SqlStore.open(tmp_path / "store.sqlite")
    with running(tmp_path, "cpu:1", store=store) as scheduler:
        jobs = scheduler.view().jobs
        assert [(jobs[one].name, jobs[one].estimate) for one in (first, second, third)] == [("one", 7200), ("two", 300), ("sweep", 60)]
        assert jobs[first].priority == jobs[second].priority > jobs[third].priority
        assert [scheduler.registry[one].launch.time_limit for one in (first, second, third)] == [7200, 7200, 60]
        assert [scheduler.registry[one].launch.array_index for one in (first, second, third)] == [0, 1, 2]
        scheduler.request([blocker], Action.CANCEL)
        must_succeed(scheduler, first, second, third)
        with pytest.raises(RefusedError, match="has ended"):
            scheduler.requests.change([first], {"name": "late"})
    store.close()
    replays(tmp_path / "store.sqlite")
