"""Jobs that need a part of a device: together on it, in turns or side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.live.mps_stand_in import ControlProgram
from tests.live.specs import running, until

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
from gantline.live.runners.local.orders import Writer
from gantline.live.runners.local.slices import Mps
from gantline.live.runners.runner_context import Task


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
