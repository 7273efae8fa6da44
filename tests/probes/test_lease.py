"""A Themis lease: GPUs are won for a time, and renewed or lost when it ends (Mahajan et al., NSDI 2020)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from tests.probes.scenario import FOREVER, fact, job, spans

from gantline.core.plan import Assignment, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class Auction(Policy):
    """Leases in force stand. A GPU whose lease is over goes to the worst-off job, judged by what it has had so far."""

    lease: float = 20.0
    placed: bool = False  # ask for one node, so that the general path commits the plan

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, within = snapshot.jobs, "node" if self.placed else ""
        keep = np.flatnonzero(jobs.running & (jobs.until > snapshot.now))
        granted = [Assignment(k, until=float(jobs.until[k]), within=within) for k in keep]
        free = snapshot.cluster.gpus - int(jobs.gpus[keep].sum())
        bidders = [k for k in np.lexsort((np.arange(len(jobs)), jobs.attained_gpu)) if k not in keep]
        for k in bidders:
            if jobs.gpus[k] <= free:
                granted.append(Assignment(int(k), until=snapshot.now + self.lease, within=within))
                free -= int(jobs.gpus[k])
        return Plan.assign(granted, valid_until=FOREVER)


def test_a_lease_is_renewed_in_place_when_nobody_bids_higher() -> None:
    run = simulate([job("a", 1, 50)], "1x1", Auction())

    assert spans(run, "a") == [(0.0, 50.0, [0], "finished")]
    assert run.summary["decisions"] >= 3  # it was asked at 20 and at 40
    assert fact(run, "a", "restarts") == 0


def test_a_lease_that_ends_within_the_minimum_run_time_waits_and_the_loop_goes_on() -> None:
    run = simulate([job("a", 1, 50), job("b", 1, 30)], "1x1", Auction(), min_run=45.0)

    first = spans(run, "a")[0]
    assert first[0] == 0.0
    assert first[1] >= 45.0
    assert run.summary["completed"] == 2
