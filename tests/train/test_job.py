"""A job's life: it saves and leaves when asked, resumes where it was, and tells the service without waiting for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.train.conftest import scheduled
from tests.train.listener import Listener

from gantline import train
from gantline.train import STOPPED, CheckpointError, Job, Membership

Join = Callable[..., Job]


def test_a_script_by_itself_is_a_job_that_nobody_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith("GANTLINE") or name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    job = train.join()
    try:
        assert list(job.steps(5)) == [0, 1, 2, 3, 4]
        assert (job.world, job.should_stop(), job.should_checkpoint(), job.resize_pending()) == (1, False, False, None)
        assert not any(tmp_path.iterdir())  # it keeps nothing unless it is told to
    finally:
        job.close()


def test_a_job_saves_and_leaves_between_steps_and_resumes_there(join: Join) -> None:
    def run(job: Job, stop_at: int) -> list[int]:
        job.keep()
        seen = []
        for step in job.steps(10):
            seen.append(step)
            job.state["sum"] = job.state.get("sum", 0) + step
            if step == stop_at:
                os.kill(os.getpid(), signal.SIGTERM)
        return seen

    with pytest.raises(SystemExit) as left:
        run(join({"GANTLINE_EPOCH": "1"}), stop_at=3)
    assert left.value.code == STOPPED == 143
    job = join({"GANTLINE_EPOCH": "2"})
    assert (job.step, job.state) == (4, {"sum": 6})
    assert run(job, stop_at=-1) == [4, 5, 6, 7, 8, 9]
    assert join({"GANTLINE_EPOCH": "3"}).state == {"sum": 45}
    assert list(join({"GANTLINE_EPOCH": "3"}).steps(10)) == []  # finished is finished, even if nobody heard of it


def test_usr1_saves_and_goes_on(join: Join) -> None:
    job = join()
    job.keep()
    for step in job.steps(6):
        if step == 2:
            os.kill(os.getpid(), signal.SIGUSR1)
        if step == 4:
            assert [path.name for path in job.folder.iterdir()] == ["000000000003.0"]
            assert not job.should_checkpoint()


def test_a_loop_that_saves_by_hand_sees_the_request_inside_its_step(join: Join) -> None:
    job, weights = join(), {"w": 0}

    def run() -> None:
        for step in job.steps(10):
            weights["w"] += 1
            if job.should_checkpoint():
                job.checkpoint(lambda path: path.write_text(str(weights["w"])))
            if job.should_stop():
                job.leave()
            if step == 4:
                job.flags.stop = True  # after the checks: the next step is the first that can know

    with pytest.raises(SystemExit):
        run()
    assert (weights["w"], job.step) == (6, 6)
    again = join()
    assert again.restore(lambda path: weights.update(w=int(path.read_text())))
    assert list(again.steps(10)) == [6, 7, 8, 9]


def test_a_loop_that_looks_at_nothing_leaves_all_the_same(join: Join) -> None:
    job = join()

    def run() -> None:
        for step in job.steps(10):
            job.flags.stop = step == 3 or job.flags.stop

    with pytest.raises(SystemExit) as left:
        run()
    assert (left.value.code, job.step) == (STOPPED, 5)


def test_old_weights_are_not_forgotten_by_mistake(join: Join) -> None:
    job = join()
    next(job.steps(3))
    job.checkpoint(lambda path: path.write_text("weights"))
    with pytest.raises(RuntimeError, match=r"job\.keep"):
        next(join().steps(3))


def test_a_save_that_cannot_work_fails_when_it_is_announced(join: Join) -> None:
    def broken(path: Path) -> None:
        raise ValueError("no such attribute")

    for save, error in [(broken, ValueError), (lambda path: None, CheckpointError)]:
        with pytest.raises(error, match=r"no such attribute|wrote nothing"):
            join().keep(save, lambda path: None)
    job = join()
    assert not job.keep(lambda path: path.write_text("weights"), lambda path: None)
    assert not [*job.folder.iterdir()], "what was tried is thrown away"


def test_a_checkpoint_that_fails_leaves_the_one_before(join: Join) -> None:
    job = join()
    walk = job.steps(5)
    next(walk)
    job.checkpoint(lambda path: path.write_text("good"))
    next(walk)

    def full(path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(CheckpointError, match=r"step 2.*No space"):
        job.checkpoint(full)
    with pytest.raises(CheckpointError, match="wrote nothing"):
        job.checkpoint(lambda path: None)
    assert [path.name for path in job.folder.iterdir()] == ["000000000001.0"]
    assert join().step == 1


def test_the_newest_two_checkpoints_are_kept_and_old_drafts_removed(join: Join) -> None:
    job = join({"GANTLINE_EPOCH": "2"})
    job.folder.mkdir()
    (job.folder / ".draft-1-99").mkdir()
    for _ in job.steps(4):
        job.checkpoint()
        job.checkpoint()  # the same step again changes nothing
    assert sorted(path.name for path in job.folder.iterdir()) == ["000000000003.2", "000000000004.2"]


def test_a_damaged_checkpoint_is_told_with_its_cure(join: Join) -> None:
    job = join()
    next(job.steps(3))
    job.checkpoint()
    (job.folder / "000000000001.0" / "state.json").write_text("{")
    with pytest.raises(CheckpointError, match="remove that folder"):
        join()


def test_data_resumes_exactly_after_a_resize(join: Join) -> None:
    """Two ranks for three steps, then three ranks: every sample once per epoch."""
    data = [f"sample {i}" for i in range(20)]

    def leg(world: int, steps: int, epoch: int) -> list[str]:
        jobs = [join({"WORLD_SIZE": str(world), "RANK": str(rank), "GANTLINE_EPOCH": str(epoch)}) for rank in range(world)]
        seen = []
        for job in jobs:
            job.keep()
            walk = job.loader(data, batch=6, epochs=2, seed=5)
            for _, batch in zip(range(steps), walk):
                assert [data[i] for i in batch.indices] == list(batch)
                seen += list(batch)
        jobs[0].checkpoint()
        return seen

    first = leg(2, 3, 1)
    assert len(first) == 18
    second = leg(3, 99, 2)
    assert sorted(first + second) == sorted(data * 2)


def test_batches_of_a_loader(join: Join) -> None:
    job = join()
    batches = list(job.loader(range(10), batch=4, shuffle=False, most=8, local_most=2, epochs=1))
    assert [(list(b), b.total, b.step, b.epoch, b.accumulation) for b in batches] == [
        ([0, 1, 2, 3], 4, 0, 0, 1),
        ([4, 5, 6, 7], 4, 1, 0, 1),
        ([8, 9], 2, 2, 0, 1),
    ]
    assert [b.parts() for b in batches] == [[(0, 1), (2, 3)], [(4, 5), (6, 7)], [(8,), (9,)]]
    assert (job.done, job.total) == (10.0, 10.0)
    assert job.position == train.Position(1, 0)
    empty = train.Batch[int]((), (), 1, 0, 0, 3)
    assert (len(empty), empty.parts()) == (0, [()])


def test_rates_follow_the_batch_that_was_asked_for(join: Join) -> None:
    job = join()
    walk = job.loader(range(1000), batch=10, most=90, shuffle=False)
    assert len(next(walk)) == 10
    assert job.rate_factor("linear") == 1.0
    job.ask_batch(40)
    assert len(next(walk)) == 40
    assert (job.rate_factor("linear"), job.rate_factor("sqrt")) == (4.0, 2.0)
    assert job.rate_factor("adascale") == pytest.approx(4.0)  # nothing is known of the noise yet
    job.noise.add(2.0, 1.5, 2, 1.0)  # square 1, variance 0.5
    assert job.rate_factor("adascale") == pytest.approx(1.5 / (0.5 / 4 + 1.0))
    assert job.rate_factor("legw", warmup=2.0) == pytest.approx(2.0 * (1 + 4) / 8)  # worth 1 + 4 steps so far, of 2 x 4
    job.ask_batch(4000)
    assert len(next(walk)) == 90
    with pytest.raises(ValueError, match="there are adascale"):
        job.rate_factor("cosine")


def test_the_service_hears_and_is_obeyed(join: Join, listener: Listener) -> None:
    listener.answer = {"stop": False, "save": False, "lease": 0.05, "gpus": 4, "batch": 20, "epoch": 3}
    job = join(scheduled(listener))
    job.keep()
    sizes = []

    def run() -> None:
        for batch in job.loader(range(100_000), batch=10, most=50):
            sizes.append(len(batch))
            job.report(loss=0.25)
            listener.wait_for(lambda body: "loss" in body)
            if len(sizes) == 3:
                assert job.resize_pending() == 4
                job.request(gpus=2, min_gpus=1)
                listener.wait_for(lambda body: "request" in body)
                listener.answer = {**listener.answer, "save": True}
            if any("saved" in body for body in listener.received):
                listener.answer = {**listener.answer, "stop": True}

    with pytest.raises(SystemExit) as left:
        run()
    assert left.value.code == STOPPED
    assert sizes[2] == 20  # what the service chose
    assert set(listener.paths) == {"/v1/jobs/j1/progress"}
    assert set(listener.tokens) == {"Bearer secret"}
    assert all(body["epoch"] == 3 for body in listener.received)
    merged: dict[str, Any] = {}
    for body in listener.received:
        merged.update(body)
    assert merged["request"] == {"gpus": 2, "min_gpus": 1}
    assert merged["saved"] == merged["done"] == job.done > 0
    assert (merged["total"], merged["loss"], merged["batch"]) == (100_000, 0.25, 20)
    assert merged["throughput"] > 0


def test_one_request_for_a_checkpoint_is_one_checkpoint(join: Join, listener: Listener) -> None:
    """Answers to what was said before a checkpoint ask for nothing new, though they arrive after it."""
    listener.answer = {"save": True}
    job = join(scheduled(listener))
    walk = job.steps(10)
    next(walk)
    assert _becomes(job.should_checkpoint)
    listener.answer = {}
    job.checkpoint()
    assert not job.should_checkpoint()
    assert listener.wait_for(lambda body: body.get("saved") == 1.0)
    assert not job.should_checkpoint()


def test_a_newer_incarnation_ends_an_older_one(join: Join, listener: Listener) -> None:
    listener.answer = {"stop": False, "epoch": 4}
    job = join(scheduled(listener, epoch=3))
    assert _becomes(job.should_stop)


@pytest.mark.parametrize("answer", [{"stop": 1, "save": "yes", "lease": -4, "gpus": True, "batch": -3, "epoch": "x"}, [], "no", None])
def test_nonsense_from_the_service_means_nothing(join: Join, listener: Listener, answer: Any) -> None:
    listener.answer = answer
    job = join(scheduled(listener))
    assert listener.wait_for(lambda body: len(listener.received) > 1)
    assert (job.should_stop(), job.should_checkpoint(), job.resize_pending()) == (False, False, None)


def test_a_service_that_is_away_costs_nothing_and_hears_all_when_it_is_back(join: Join, listener: Listener) -> None:
    listener.code = 503
    job = join(scheduled(listener))
    for step in job.steps(50):
        job.report(loss=float(step))
    assert _becomes(lambda: job.orders.wire is not None and job.orders.wire.failures > 0)
    assert not job.orders.wire.flush(60.0)  # it does not wait for one that is away
    listener.code = 200
    assert listener.wait_for(lambda body: body.get("loss") == 49.0 and body.get("done") == 50.0)


def test_a_report_that_is_refused_holds_up_no_other(join: Join, listener: Listener) -> None:
    listener.code = 422
    job = join(scheduled(listener))
    with pytest.raises(ValueError, match="no field 'nonsense'"):
        job.report(nonsense="x")
    job.orders.wire.report({"nonsense": "x"})
    assert listener.wait_for(lambda body: "nonsense" in body)
    listener.code = 200
    job.report(loss=float("nan"))
    job.report(loss=1.0)
    assert listener.wait_for(lambda body: "loss" in body and "nonsense" not in body)


def test_nobody_listens(join: Join) -> None:
    job = join({"GANTLINE_URL": "http://127.0.0.1:9", "GANTLINE_JOB_ID": "x"})
    job.keep()
    assert len(list(job.steps(100))) == 100
    assert not job.should_stop()


def test_only_the_first_rank_speaks(join: Join, listener: Listener) -> None:
    job = join({**scheduled(listener), "RANK": "1", "WORLD_SIZE": "2"})
    list(job.steps(3))
    job.close()
    assert listener.received == []


def test_a_gang_leaves_at_the_same_step(tmp_path: Path) -> None:
    """One rank of three is asked to stop; all save and leave after the same step."""
    world, ends, shared = 3, {}, [[0.0] * 8 for _ in range(3)]
    barrier = threading.Barrier(world)

    def rank(number: int) -> None:
        def add(values: list[float]) -> list[float]:
            shared[number][: len(values)] = values
            barrier.wait(60)
            total = [sum(column) for column in zip(*shared)][: len(values)]
            barrier.wait(60)
            return total

        environment = {"WORLD_SIZE": "3", "RANK": str(number), "GANTLINE_CHECKPOINT": str(tmp_path), "GANTLINE_EPOCH": "1"}
        job = Job(Membership.read(environment), sum_over_ranks=add)
        job.keep()
        try:
            for step in job.steps(20):
                if number == 2 and step == 5:
                    job.flags.stop = True
        except SystemExit:
            ends[number] = job.step

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(world)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == {0: 6, 1: 6, 2: 6}
    assert [path.name for path in tmp_path.iterdir()] == ["000000000006.1"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"RANK": "2", "WORLD_SIZE": "2"}, "ranks run from 0 to 1"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE is '0'"),
        ({"GANTLINE_EPOCH": "one"}, "GANTLINE_EPOCH is 'one'"),
        ({"GANTLINE_URL": "file:///etc/passwd"}, "http://HOST:PORT"),
    ],
)
def test_a_wrong_environment_is_told(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Membership.read(wrong)


def test_the_environment_of_a_runner_is_read(tmp_path: Path) -> None:
    told = {
        "GANTLINE_URL": "http://127.0.0.1:8000/",
        "GANTLINE_JOB_ID": "j7",
        "GANTLINE_DEVICES": "gpu:0,gpu:1",
        "GANTLINE_GPUS": "2",
        "RANK": "1",
        "WORLD_SIZE": "2",
        "RESTART_COUNT": "4",
    }
    member = Membership.read(told, folder=tmp_path)
    assert (member.url, member.job, member.devices, member.gpus) == ("http://127.0.0.1:8000", "j7", ("gpu:0", "gpu:1"), 2)
    assert (member.rank, member.world, member.restarts, member.folder, member.is_scheduled) == (1, 2, 4, tmp_path, True)


def _becomes(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether something becomes true within a generous time."""
    waiting = threading.Event()
    for _ in range(int(seconds / 0.01)):
        if holds():
            return True
        waiting.wait(0.01)
    return False
