"""A CASSINI shift: jobs that share only a link begin their communication at different times (Rajasekaran et al., NSDI 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.grant import Grant
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.performance.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate

ITERATION = 0.2  # seconds, half of it on the wire


@dataclass(frozen=True)
class Uplinks(PerformanceModel):
    """Two jobs that cross racks meet on the uplinks: half their iteration is at half speed, unless they are shifted apart."""

    def granted(self, gang: Gang) -> float:
        grant, place = gang.grant, gang.cluster
        assert grant is not None

        def crosses(devices: tuple[int, ...]) -> bool:
            return len({int(place.node_rack[place.device_node[d]]) for d in devices}) > 1

        def busy_from(one: Grant) -> float:
            return one.assignment.offset % ITERATION

        others = [mate.grant for mate in gang.mates]
        meets = [m for m in others if crosses(m.devices) and crosses(grant.devices) and busy_from(m) == busy_from(grant)]
        return 1.0 if not meets else ITERATION / (ITERATION + 0.1)


@dataclass(frozen=True)
class Shift(Policy):
    """Each job keeps its own GPUs, one in each rack; all are in one group, because all cross the same uplinks."""

    shift: float = 0.1
    mode: Mode = Mode.INTERLEAVE

    def decide(self, snapshot: Snapshot) -> Plan:
        rows = []
        for k, name in enumerate(snapshot.jobs.ids):
            mine = int(name[1:])
            rows.append(Assignment(k, devices=(mine, 2 + mine), group=0, mode=self.mode, offset=mine * self.shift))
        return Plan.assign(rows, valid_until=FOREVER)


JOBS = [job("j0", 2, 100), job("j1", 2, 60)]
RACKS = "1x2@east,1x2@west"


@pytest.mark.parametrize("mode", [Mode.INTERLEAVE, Mode.EXCLUSIVE])
def test_shifted_jobs_do_not_meet_on_the_link_and_share_no_device(mode: Mode) -> None:
    run = simulate(JOBS, RACKS, Shift(mode=mode), performance=Uplinks())

    assert spans(run, "j0") == [(0.0, pytest.approx(100.0), [0, 2], "finished")]
    assert spans(run, "j1") == [(0.0, pytest.approx(60.0), [1, 3], "finished")]


def test_unshifted_jobs_collide_until_one_has_gone() -> None:
    run = simulate(JOBS, RACKS, Shift(shift=0.0), performance=Uplinks())

    assert fact(run, "j1", "finish") == pytest.approx(90.0)
    assert fact(run, "j0", "finish") == pytest.approx(90.0 + (100 - 60))


def test_members_of_a_group_may_be_placed_by_the_engine_each_on_devices_of_its_own() -> None:
    @dataclass(frozen=True)
    class Grouped(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(k, group=0, offset=0.1 * k) for k in range(len(snapshot.jobs))], valid_until=FOREVER)

    run = simulate(JOBS, RACKS, Grouped(), performance=Uplinks())

    assert [devices for name in ("j0", "j1") for _, _, devices, _ in spans(run, name)] == [[0, 1], [2, 3]]
