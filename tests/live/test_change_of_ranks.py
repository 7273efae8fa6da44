"""Jobs with a rank per device that grow and shrink while they train: real processes, averaging over sockets."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.live.specs import Spec, ended, must_succeed, running, state, until, until_running

from gantline.core.inputs import Action
from gantline.live.jobs.launch import Launch
from gantline.live.runners.local.execution import staying_ranks
from gantline.live.runners.local.files import read_json, say_first, write_json
from gantline.live.runners.local.ranks import Ranks
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store.records import MemoryStore

ROOT = Path(__file__).parents[2]
POLICY = f"{ROOT}/tests/engine/assigning.py:AsAsked"
SAMPLES, BATCH = 40, 10


class Line(NamedTuple):
    step: int
    rank: int
    world: int
    pid: int
    samples: tuple[int, ...]


def gang(seen: Path, gpus: int, epochs: int, setup: str = "", program: str = f"{ROOT}/examples/train_gang.py") -> Spec:
    """The example, with a moment for each step; `setup` runs before it, in the same process."""
    words = f"--samples {SAMPLES} --batch {BATCH} --epochs {epochs} --pause 0.02 --seen {seen}"
    line = f"{setup} exec {sys.executable} -S {program} {words}"
    env = {"PYTHONPATH": str(ROOT / "src")}
    launch = Launch((line,), shell=True, env=env, processes=0, changes=("devices",), resumes=True)
    return Spec(launch, job={"gpus": gpus, "min_gpus": 1, "max_gpus": 4})


def lines(seen: Path) -> list[Line]:
    """What the ranks have written; the last line may not be whole."""
    found = []
    for line in seen.read_text().split("\n")[:-1] if seen.exists() else []:
        step, rank, world, pid, samples = line.split(" ")
        found.append(Line(int(step), int(rank), int(world), int(pid), tuple(int(one) for one in samples.split(",") if one)))
    return found


def resize(scheduler: Scheduler, job: str, gpus: int) -> None:
    scheduler.request([job], Action.RESIZE, gpus=gpus, min_gpus=1, max_gpus=4)


def sizes(seen: Path) -> list[int]:
    """How many ranks made each step, in the order of steps."""
    return [world for _, world in sorted({(line.step, line.world) for line in lines(seen)})]


@pytest.mark.parametrize("devices", ["cpu:3", "cpu:1/3"], ids=["slots", "slices"])
def test_a_gang_grows_and_shrinks_and_nobody_starts_again(tmp_path: Path, devices: str) -> None:
    """One rank, three, two: every step is made once, every sample seen once per epoch, by the same first process all the time."""
    seen = tmp_path / "seen"
    with running(tmp_path, devices, POLICY) as scheduler:
        (job,) = scheduler.submit(gang(seen, 1, epochs=30))
        until(lambda: lines(seen), "the first step")
        resize(scheduler, job, 3)
        until(lambda: 3 in sizes(seen), "three ranks")
        until_running(scheduler, job)
        resize(scheduler, job, 2)
        until(lambda: 2 in sizes(seen), "two ranks")
        (other,) = scheduler.submit(Spec(Launch(("true",))))
        assert ended(scheduler, other) == ["succeeded"], "the device that was given up is used"
        must_succeed(scheduler, job)
        assert sorted(path.name for path in (tmp_path / "jobs" / job).glob("[0-9]*")) == ["1"], "one incarnation"
        log = (tmp_path / "jobs" / job / "1" / "log").read_text()
    told = lines(seen)
    assert [step for step, _ in sorted({(line.step, line.world) for line in told})] == list(range(30 * SAMPLES // BATCH))
    assert list(dict.fromkeys(sizes(seen))) == [1, 3, 2]
    assert len({line.pid for line in told if line.rank == 0}) == 1
    assert len({line.pid for line in told}) == 3
    assert Counter(one for line in told for one in line.samples) == dict.fromkeys(range(SAMPLES), 30)
    assert f"after {30 * SAMPLES // BATCH} steps" in log


@pytest.mark.parametrize(("fate", "why"), [("exit 9", "rank 2 ended with exit code 9"), ("sleep 1000", "not ready within 1 s")])
def test_a_newcomer_that_fails_leaves_the_gang_as_it_is(tmp_path: Path, fate: str, why: str) -> None:
    seen, store = tmp_path / "seen", MemoryStore()
    with running(tmp_path, "cpu:3", POLICY, store) as scheduler:
        scheduler.runner.join_limit = 1.0
        (job,) = scheduler.submit(gang(seen, 2, epochs=30, setup=f'[ "$RANK" != 2 ] || {fate};'))
        until(lambda: lines(seen), "the first step")
        resize(scheduler, job, 3)
        until(lambda: scheduler.view().jobs[job].max_gpus == 2, "it stays as it is")
        until_running(scheduler, job)
        assert len(scheduler.view().jobs[job].devices) == 2
        (other,) = scheduler.submit(Spec(Launch(("true",))))
        assert ended(scheduler, other, job) == ["succeeded", "succeeded"], "what it was given for nothing is free"
        assert sorted(path.name for path in (tmp_path / "jobs" / job).glob("[0-9]*")) == ["1"]
    told = lines(seen)
    assert set(sizes(seen)) == {2}
    assert len({line.pid for line in told}) == 2
    assert Counter(one for line in told for one in line.samples) == dict.fromkeys(range(SAMPLES), 30)
    (event,) = [one for one in store.event_log if one["event"] == "resize-refused"]
    assert why in event["why"]


def test_devices_are_given_up_by_those_who_are_gone(tmp_path: Path) -> None:
    ranks = Ranks(str(tmp_path))
    ranks.processes = [subprocess.Popen(["sleep", "1000"]) for _ in range(3)]
    ranks.gang = [0, 1]
    ranks.begin_change({"epoch": 2, "members": [1]}, [2])
    assert ranks.follow_change() is None, "nobody has decided"
    assert say_first(str(tmp_path / "switch.2"), {"epoch": 2}) == {"epoch": 2}
    assert say_first(str(tmp_path / "switch.2"), {"epoch": 2, "refused": "late"}) == {"epoch": 2}, "the first word counts"
    assert ranks.follow_change() is None, "the new gang does not stand yet"
    write_json(str(tmp_path / "switched"), 2)
    assert ranks.follow_change() is None, "rank 0 is still there"
    ranks.processes[0].kill()
    ranks.processes[0].wait()
    ranks.processes[0].returncode = 0  # as if it had left by itself
    assert not ranks.reap(asked_stop=False)
    assert ranks.follow_change() == {"gang": 2}
    assert (ranks.gang, ranks.rank_of(2)) == ([1, 2], 1)
    for process in ranks.processes[1:]:
        process.kill()
        process.wait()
    assert ranks.reap(asked_stop=False), "one rank has failed: all must end"
    assert ranks.finished


def test_a_newcomer_that_was_lost_when_the_others_took_it_in_breaks_the_change(tmp_path: Path) -> None:
    ranks = Ranks(str(tmp_path))
    ranks.processes = [subprocess.Popen(["sleep", "1000"]), subprocess.Popen(["true"])]
    ranks.gang = [0]
    ranks.begin_change({"epoch": 2, "members": [0]}, [1])
    ranks.processes[1].wait()
    assert not ranks.reap(asked_stop=False), "it is nobody yet"
    say_first(str(tmp_path / "switch.2"), {"epoch": 2})  # the first rank was quicker than who could refuse
    assert ranks.follow_change() == {"broken": 2}
    assert ranks.follow_change() is None
    assert ranks.failed_changing
    ranks.processes[0].kill()
    ranks.processes[0].wait()


def test_a_rank_stays_with_its_gpu_and_any_slot_is_as_good_as_another() -> None:
    assert staying_ranks((0, 1, 2), (2, 4, 0), alike=False) == ((0, 2), (0, 2, 4))
    assert staying_ranks((0, 1), (1,), alike=False) == ((1,), (1,))
    assert staying_ranks((0, 1), (1,), alike=True) == ((0,), (1,))
    assert staying_ranks((0,), (1, 2), alike=True) == ((0,), (1, 2))
    assert staying_ranks((0,), (1, 2), alike=False)[0] == (), "nobody stays: then it must be stopped"


def test_a_service_that_dies_in_between_finds_the_gang_changing(tmp_path: Path) -> None:
    """It comes back while a newcomer still prepares: the change goes on, and what is known of it is right."""
    seen, store, go = tmp_path / "seen", MemoryStore(), tmp_path / "go"
    first = Scheduler(store, LocalRunner(tmp_path, "cpu:2"), POLICY)
    first.start()
    waits = f'[ "$RANK" = 0 ] || while [ ! -e {go} ]; do sleep 0.02; done;'
    (job,) = first.submit(gang(seen, 1, epochs=30, setup=waits))
    until(lambda: lines(seen), "the first step")
    resize(first, job, 2)
    until(lambda: (tmp_path / "jobs" / job / "1" / "grant.json").exists(), "the change has begun")
    made = len(lines(seen))
    until(lambda: len(lines(seen)) > made + 3, "the others train on meanwhile")
    first.stop()
    with running(tmp_path, "cpu:2", POLICY, store) as scheduler:
        assert state(scheduler, job) == "resizing"
        go.touch()
        until_running(scheduler, job)
        assert read_json(str(tmp_path / "jobs" / job / "1" / "switched")) == 2
        must_succeed(scheduler, job)
    assert list(dict.fromkeys(sizes(seen))) == [1, 2]
    assert Counter(one for line in lines(seen) for one in line.samples) == dict.fromkeys(range(SAMPLES), 30)


def test_a_gang_that_breaks_while_it_changes_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    """The newcomer dies when the checkpoint for it is there: everybody starts again, from the step at which that was."""
    seen = tmp_path / "seen"
    breaks = tmp_path / "breaks.py"
    breaks.write_text(
        "import os, runpy, time\n"
        "from gantline.train import SocketGang\n"
        "def form(self, member):\n"
        "    while not list(member.folder.glob('0*')):\n"
        "        time.sleep(0.01)\n"
        "    os._exit(5)\n"
        "if 'GANTLINE_JOINING' in os.environ:\n"
        "    SocketGang.form = form\n"
        f"runpy.run_path({f'{ROOT}/examples/train_gang.py'!r}, run_name='__main__')\n"
    )
    with running(tmp_path, "cpu:2", POLICY) as scheduler:
        (job,) = scheduler.submit(gang(seen, 1, epochs=20, program=str(breaks)))
        until(lambda: len(lines(seen)) > 3, "some steps")
        resize(scheduler, job, 2)
        must_succeed(scheduler, job)
        assert scheduler.view().jobs[job].failures == 0, "it is not the job's failure"
        assert len(list((tmp_path / "jobs" / job).glob("[0-9]*"))) == 2
    told = lines(seen)
    assert list(dict.fromkeys(sizes(seen))) == [1, 2]
    assert Counter(one for line in told for one in line.samples) == dict.fromkeys(range(SAMPLES), 20), "no step was made twice"
