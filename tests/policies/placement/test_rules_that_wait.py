"""Placement rules of users that say "not here, not now", and rules that never answer."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.jobs import by_job, job_row

from gantline.core.errors import RefusedError
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.fifo import Fifo
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.simulator.roll_forward import carry_out
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


class OneNode(DeviceRule):
    """A gang that fits on a node waits for one; larger gangs take what is free."""

    together = waits = True

    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int] | None:
        nodes = sorted(free.by_node().values(), key=len)
        for devices in nodes:
            if len(devices) >= gang.gpus:
                return devices[: gang.gpus]
        return None if gang.gpus <= 4 else list(free.devices)[: gang.gpus]


def jobs(*rows: tuple[str, float, float, int]) -> Trace:
    return Trace.from_records([job_row(job, gpus, long, at=at) for job, at, long, gpus in rows])


CROWDED = jobs(("a", 0.0, 100.0, 3), ("b", 0.0, 200.0, 3), ("wide", 10.0, 50.0, 2), ("small", 20.0, 30.0, 1))


def starts(run: Run) -> dict[str, float]:
    return by_job(run, "first_start")


def test_a_gang_that_is_to_wait_waits_and_its_devices_go_to_those_behind_it() -> None:
    """Two devices are free, on two nodes: first-free would spread the wide gang, which here waits until a node has room."""
    run = simulate(CROWDED, "2x4", "srtf", placement=OneNode(), min_run=1000.0)
    assert starts(run) == {"a": 0.0, "b": 0.0, "wide": 100.0, "small": 20.0}
    assert starts(simulate(CROWDED, "2x4", "srtf", min_run=1000.0))["wide"] == 10.0
    assert not run.incidents


def test_where_no_job_may_pass_another_those_behind_it_wait_too() -> None:
    run = simulate(CROWDED, "2x4", "fifo", placement=OneNode())
    assert starts(run) == {"a": 0.0, "b": 0.0, "wide": 100.0, "small": 100.0}


def test_no_gang_is_stopped_for_one_that_then_waits() -> None:
    class Never(DeviceRule):
        waits = True

        def choose(self, gang: GangRequest, free: FreeDevices) -> list[int] | None:
            return None if gang.job == "short" else list(free.devices)[: gang.gpus]

    trace = jobs(("long", 0.0, 100.0, 4), ("short", 10.0, 5.0, 2))
    run = simulate(trace, "1x4", "srtf", placement=Never(), until=90.0)
    assert run.summary["preemptions"] == 0
    assert run.allocations.select("job", "start").rows() == [("long", 0.0)]


def test_why_it_waits_is_said() -> None:
    runs = [{"id": f"runs{node}", "gpus": 3, "devices": [4 * node + k for k in range(3)]} for node in range(2)]
    instant = decode_snapshot({"cluster": "2x4", "jobs": [*runs, {"id": "wide", "gpus": 2}]})
    (wide,) = [one for one in carry_out(instant, Fifo().decide(instant), OneNode()) if one.job == "wide"]
    assert (wide.act, wide.why) == ("waits", "enough devices are free, but not together as its placement wants them")


def test_policies_that_assign_are_refused_beside_a_rule_that_waits() -> None:
    with pytest.raises(RefusedError, match=r"placement 'OneNode' may make gangs wait, and policy 'equal-share' does not rank jobs"):
        simulate(CROWDED, "2x4", "equal-share", placement=OneNode())


def test_a_rule_that_does_not_say_so_must_not_make_gangs_wait() -> None:
    class Silent(OneNode):
        waits = False

    (what,) = simulate(CROWDED, "2x4", "fifo", placement=Silent()).incidents[:1]
    assert "placement 'Silent', job 'wide': chose nothing (say waits = True, or choose gang.gpus devices)" in what


class Endless(DeviceRule):
    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        while gang.job == "wide":
            try:
                time.sleep(0.001)
            except Exception:
                continue
        return list(free.devices)[: gang.gpus]


def test_a_rule_that_never_answers_is_interrupted_and_named_with_the_job() -> None:
    run = simulate(CROWDED, "2x4", "fifo", placement=Endless(), budget=0.05)
    assert run.summary["completed"] == 4
    what = [one for one in run.incidents if "Endless" in one]
    assert "placement 'Endless', job 'wide': was interrupted after 0.05 s without an answer" in what[0]
    assert len(what) <= 2


def test_a_file_with_a_rule_that_waits_works_from_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    lines = "    waits = True\n\n    def choose(self, gang, free):\n        devices = list(free.devices)\n"
    lines += "        return devices if len(devices) == 8 and gang.gpus == 8 else devices[: gang.gpus] if gang.gpus < 8 else None\n"
    file.write_text(f"from gantline import DeviceRule\n\n\nclass Mine(DeviceRule):\n{lines}")
    assert simulate(CROWDED, "2x4", "fifo", placement=f"{file}:Mine").summary["completed"] == 4
