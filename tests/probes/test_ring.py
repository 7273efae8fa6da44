"""MAPA: the policy reads the link graph and names the devices of a ring, in rank order (Ranganath et al., SC 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.scenario import FOREVER, job, spans

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate

#: one node with five GPUs: 3-1-4 are on double NVLink, everything else crosses PCIe
FAST = {(1, 3), (1, 4), (3, 4)}
LINKS = tuple(
    Link(f"node0:{a}", f"node0:{b}", 50.0 if (a, b) in FAST else 12.0, "nvlink" if (a, b) in FAST else "pcie")
    for a in range(5)
    for b in range(a + 1, 5)
)
DGX = Cluster((Node("node0", gpus=5),), LINKS, "a small DGX")


def test_ranks_are_logged_as_the_plan_ordered_them() -> None:
    @dataclass(frozen=True)
    class Backwards(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            return Plan.assign([Assignment(k, devices=(4, 1, 3)) for k in range(len(snapshot.jobs))], valid_until=FOREVER)

    run = simulate([job("ring", 3, 100)], DGX, Backwards())

    assert spans(run, "ring") == [(0.0, 100.0, [4, 1, 3], "finished")]
