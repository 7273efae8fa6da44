"""Real processes that are changed while they run: turns by suspension, other devices without a stop."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.live.specs import Spec, ended, must_succeed, running, state, submit, until

import gantline
from gantline.core.grant import Grant
from gantline.core.inputs import Action
from gantline.core.plan import Assignment
from gantline.engine.executor import Order, Verb
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.orders import terms_of

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
