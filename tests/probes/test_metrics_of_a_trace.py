"""What a trace says of a job in numbers reaches policies and performance models; a model sees the speed alone beside the divided one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.probes.scenario import IN_ONE_GROUP, facts, job

from gantline.core.arrays import Floats
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace


def test_a_policy_orders_jobs_by_a_column_that_the_schema_does_not_know() -> None:
    class CalmFirst(OrderPolicy):
        """The least used device first, as a packing policy would look at it; unknown utilisation last."""

        def key(self, snapshot: Snapshot) -> Floats:
            used = snapshot.jobs.metric("util")
            return np.where(np.isnan(used), 1e9, used)

    jobs = [job("loud", 1, 100, util=80, stage_io=0.5), job("calm", 1, 100, util=20), job("still", 1, 100)]

    assert facts(simulate(jobs, "1x1", CalmFirst()), "first_start") == {"calm": 0.0, "loud": 100.0, "still": 200.0}


def test_columns_of_numbers_are_metrics_and_what_tells_the_end_of_a_job_is_not() -> None:
    trace = Trace.from_records([job("a", cpus=8, note="x", ended=70.0, attempts=2, util=None), job("b", cpus=4, note="y", util=3)])

    assert {name: values.tolist() for name, values in trace.metrics.items() if name != "util"} == {"cpus": [8.0, 4.0]}
    assert math.isnan(trace.metrics["util"][0])
    assert trace.metrics["util"][1] == 3.0


def test_the_divided_speed_of_a_pair_is_half_of_the_speed_alone() -> None:
    class Watching(PerformanceModel):
        """Gangs go at what they are shown as divided."""

        def granted(self, gang: Gang) -> float:
            assert gang.divided == pytest.approx(gang.alone / (1 + len(gang.mates)))
            return gang.divided

    pair = [job(name, 1, 100, options="gpu:1=50") for name in ("one", "two")]

    assert facts(simulate(pair, "gpu:1x1", IN_ONE_GROUP, performance=Watching()), "finish") == pytest.approx({"one": 100.0, "two": 100.0})
