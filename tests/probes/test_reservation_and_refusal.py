"""ElasticFlow: GPUs reserved in future time, and a refusal with a counter-offer (Gu et al., ASPLOS 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from tests.probes.scenario import FOREVER, fact, job

from gantline.core.plan import Assignment, Plan, Refusal, Reservation
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.simulator.simulate import simulate


@dataclass(frozen=True)
class Slots(Policy):
    """The whole cluster is one machine: a new job gets the first slot after all reserved ones, if that ends by its deadline."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, now = snapshot.jobs, snapshot.now
        slots = list(snapshot.reservations)
        refusals = []
        for k in range(len(jobs)):
            if any(slot.job == k for slot in slots):
                continue
            start = max([now, *(slot.end for slot in slots)])
            end = start + float(jobs.remaining[k])
            if end > jobs.deadline[k]:
                refusals.append(Refusal(k, "cannot end by its deadline", {"deadline": end}))
            else:
                slots.append(Reservation(start, end, int(jobs.gpus[k]), job=k))
        running = [Assignment(slot.job, until=slot.end) for slot in slots if slot.start <= now < slot.end]
        later = min((slot.start for slot in slots if slot.start > now), default=FOREVER)
        return Plan.assign(running, reservations=tuple(slots), refusals=tuple(refusals), valid_until=later)


JOBS = [
    job("a", 4, 100, deadline=200.0),
    job("b", 4, 100, at=10.0, deadline=250.0),
    job("c", 4, 100, at=20.0, deadline=220.0),
    job("d", 4, 50, at=30.0, deadline=300.0),
]


def test_the_refused_job_leaves_with_an_offer_and_the_run_tells() -> None:
    run = simulate(JOBS, "1x4", Slots())

    assert fact(run, "c", "state") == "rejected"
    assert np.isnan(fact(run, "c", "first_start"))
    told = run.events.filter(run.events["kind"] == "rejected").to_dicts()
    assert told == [{"time": 20.0, "kind": "rejected", "job": "c", "detail": "cannot end by its deadline (offer: deadline=300)"}]
    assert [(one.time, one.offer) for one in run.refusals] == [(20.0, {"deadline": 300.0})]


def test_plans_that_come_late_still_mean_the_jobs_they_were_made_for() -> None:
    run = simulate(JOBS, "1x4", Slots(), latency=5.0)

    assert fact(run, "c", "state") == "rejected"
    assert run.summary["completed"] == 3
    assert fact(run, "a", "finish") == pytest.approx(105.0)


def test_a_job_that_runs_cannot_be_refused() -> None:
    @dataclass(frozen=True)
    class Fickle(Policy):
        def decide(self, snapshot: Snapshot) -> Plan:
            if snapshot.now < 50:
                return Plan.assign([Assignment(0)], valid_until=50.0)
            return Plan(refusals=(Refusal(0, "not any more"),), valid_until=FOREVER)

    run = simulate([job("a", 1, 100)], "1x1", Fickle())

    assert fact(run, "a", "state") == "completed"
    assert "does not wait any more" in run.incidents[0]
