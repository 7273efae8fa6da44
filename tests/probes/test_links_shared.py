"""Links as a resource: a policy sees which jobs cross each link and how loaded it is, a model the neighbours of a gang."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from tests.probes.scenario import FOREVER, job

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gangs, PerformanceModel
from gantline.simulator.simulate import simulate

UPLINK = Cluster(tuple(Node(f"n{k}", gpus=2, rack=f"r{k}") for k in range(2)), (Link("rack:r0", "rack:r1", 1.0),))
SENDS = {"iteration_time": 0.2, "stage_network": 0.1, "link_bandwidth": 1.0}
seen: list[Any] = []


@dataclass(frozen=True)
class Across(Policy):
    """Each job has a GPU in each rack."""

    def decide(self, snapshot: Snapshot) -> Plan:
        places = {"a": (0, 2), "b": (1, 3)}
        seen.append((snapshot.cluster.links.users, snapshot.cluster.links.load.tolist()))
        return Plan.assign([Assignment(k, devices=places[name]) for k, name in enumerate(snapshot.jobs.ids)], valid_until=FOREVER)


def test_a_snapshot_shows_which_jobs_cross_a_link_and_how_loaded_it_is() -> None:
    seen.clear()
    simulate([job("a", 2, 100, **SENDS), job("b", 2, 60, **SENDS)], UPLINK, Across(), performance="shared-links")

    assert seen[0] == (((),), [0.0])
    assert (((0,),), [0.5]) in seen  # "b" has gone


def test_a_model_sees_the_neighbours_of_a_gang() -> None:
    met = []

    @dataclass(frozen=True)
    class Watching(PerformanceModel):
        about_everyone: ClassVar[bool] = True

        def rates(self, gangs: Gangs) -> tuple[Any, Any]:
            met.append([[(near.job, near.links) for near in gangs[at].neighbours] for at in range(len(gangs))])
            return gangs.divided, np.full(len(gangs), np.inf)

    simulate([job("a", 2, 100, **SENDS), job("b", 2, 60, **SENDS)], UPLINK, Across(), performance=Watching())

    assert [[("b", (0,))], [("a", (0,))]] in met
