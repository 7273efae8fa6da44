"""A CASSINI shift: jobs that share only a link begin their communication at different times (Rajasekaran et al., NSDI 2024)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.scenario import FOREVER, job, spans

from gantline.core.grant import Grant
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
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


JOBS = [job("j0", 2, 100), job("j1", 2, 60)]
RACKS = "1x2@east,1x2@west"


def test_members_of_a_group_may_be_placed_by_the_engine_each_on_devices_of_its_own() -> None:
    @dataclass(frozen=True)
    class Grouped(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(k, group=0, offset=0.1 * k) for k in range(len(snapshot.jobs))], valid_until=FOREVER)

    run = simulate(JOBS, RACKS, Grouped(), performance=Uplinks())

    assert [devices for name in ("j0", "j1") for _, _, devices, _ in spans(run, name)] == [[0, 1], [2, 3]]
