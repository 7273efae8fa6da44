"""Device memory: what gangs take of their devices is booked, and more than there is is refused with the amounts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import RefusedError, TraceError, UsageError
from gantline.core.inputs import Submit
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

PAIR = [job("host", 1, 100, device_memory=60), job("guest", 1, 100, device_memory=60)]


@dataclass(frozen=True)
class SideBySide(Policy):
    """All jobs share, on named devices or where the engine puts them; caps by job and time."""

    devices: tuple[int, ...] = (0,)
    caps: tuple[tuple[float, float], ...] = ()  # (before 50 s, from then on) by job

    def decide(self, snapshot: Snapshot) -> Plan:
        later = snapshot.now >= 50.0
        rows = [self._assignment(k, row, later) for k, row in enumerate(snapshot.jobs.rows.tolist())]
        return Plan.assign(rows, valid_until=FOREVER if later or not self.caps else 50.0)

    def _assignment(self, k: int, row: int, later: bool) -> Assignment:
        said: dict[str, Any] = {"devices": self.devices} if self.devices else {"group": 0, "size": 2}
        if self.caps:
            said["memory_cap"] = self.caps[row][later]
        return Assignment(k, mode=Mode.SPACE, fraction=0.5, **said)


def test_sixty_and_sixty_do_not_fit_on_eighty_and_the_amounts_are_said() -> None:
    run = simulate(PAIR, "h100:1x1/80d", SideBySide())

    assert spans(run, "host") == [(0.0, 200.0, [0], "finished")]  # half of the device is its own
    assert fact(run, "guest", "first_start") == 200.0
    assert "'guest' needs 60 GB of device memory, and node0:0 has 80 GB, of which 60 GB are taken" in run.incidents[0]


def test_where_the_cluster_does_not_say_nothing_is_counted() -> None:
    run = simulate(PAIR, "h100:1x1", SideBySide())

    assert fact(run, "guest", "first_start") == 0.0


def test_the_engine_puts_a_guest_where_memory_is_left() -> None:
    run = simulate([*PAIR, job("small", 1, 100, device_memory=20)], "h100:1x2/80d", SideBySide(devices=()))

    assert [spans(run, name)[0][:3] for name in ("host", "guest")] == [(0.0, 200.0, [0]), (0.0, 200.0, [1])]
    assert fact(run, "small", "first_start") == 0.0


def test_a_cap_is_booked_instead_of_what_the_job_needs() -> None:
    run = simulate(PAIR, "h100:1x1/80d", SideBySide(caps=((40.0, 40.0), (40.0, 40.0))))

    assert fact(run, "guest", "first_start") == 0.0


def test_a_host_that_gives_memory_up_lets_the_guest_in_by_the_same_plan() -> None:
    run = simulate(PAIR, "h100:1x1/80d", SideBySide(caps=((60.0, 30.0), (50.0, 50.0))))

    assert fact(run, "guest", "first_start") == 50.0
    assert fact(run, "host", "restarts") == 0


def test_a_cap_that_is_raised_beyond_what_is_left_stays_as_it_was_with_the_reason() -> None:
    seen: list[tuple[float, int]] = []

    @dataclass(frozen=True)
    class Watched(SideBySide):
        def decide(self, snapshot: Snapshot) -> Plan:
            grant = snapshot.jobs.grant(0)
            if snapshot.now >= 60.0 and grant is not None:
                seen.append((grant.assignment.memory_cap, int(snapshot.jobs.reason[0])))
            return super().decide(snapshot)

    jobs = [*PAIR, job("late", 1, 10, at=60.0, device_memory=90)]
    simulate(jobs, "h100:1x1/100d", Watched(caps=((40.0, 70.0), (40.0, 40.0), (1.0, 1.0))))

    assert seen[0] == (40.0, int(Reason.DEVICE_MEMORY))


def test_a_job_that_no_device_can_hold_is_refused_before_the_run_with_the_amount() -> None:
    with pytest.raises(TraceError, match=r"'host' needs 60 GB of device memory .* devices have v100 32 GB \(2 such jobs\)"):
        simulate(PAIR, "v100:1x1/32d", "fifo")


def test_a_gang_of_its_own_cannot_have_more_than_a_device_has() -> None:
    @dataclass(frozen=True)
    class AsksForMore(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(0, memory_cap=100.0)], valid_until=FOREVER)

    run = simulate([job("a", 1, 100)], "h100:1x1/80d", AsksForMore(), until=50.0)

    assert spans(run, "a") == []
    assert "needs 100 GB of device memory, and node0:0 has 80 GB" in run.incidents[0]


def test_options_on_devices_that_are_too_small_are_left_out() -> None:
    run = simulate([job("a", 1, 100, options="v100:1=100|h100:1=50", device_memory=60)], "v100:1x1/32d,h100:1x1/80d", "fifo")

    assert spans(run, "a") == [(0.0, 50.0, [1], "finished")]
    assert run.summary["left_out_options"] == 1


def test_a_submitted_job_that_no_device_can_hold_is_refused_with_the_amount() -> None:
    late = Submit(5.0, {"id": "late", "gpus": 1, "metrics": {"device_memory": 60.0}}, work=10.0)

    with pytest.raises(RefusedError, match="'late' needs 60 GB of device memory, and v100 has 32"):
        simulate([job("a", 1, 100)], "v100:1x1/32d", "fifo", inputs=[late])


def test_devices_of_one_type_have_one_size() -> None:
    assert parse_cluster("v100:4x8/24c/500g/500s/32d@r1,cpu:1x0").device_memory == (32.0, 0.0)
    with pytest.raises(UsageError, match="devices of type 'v100' have 16 and 32 GB"):
        parse_cluster("v100:1x1/16d,v100:1x1/32d")
