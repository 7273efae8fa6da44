"""AlloX in the default regime on the beginning of its simulator's trace; docs/policies/allox.md has the whole of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.systems.allox import reference

from gantline.simulator.simulate import simulate
from gantline.systems.allox.importer import read

CLUSTER = "gpu:20x1/2c/64g,cpu:20x0/32c/64g"


@pytest.mark.long  # the records hold the runs themselves
def test_with_alpha_one_it_is_near_srpt_and_below_sjf_and_fairness_costs() -> None:
    jobs = read(reference.path("trace_google_m1_10000.csv")).frame.head(1000)

    def mean(policy: str, **settings: Any) -> float:
        return float(simulate(jobs, CLUSTER, policy, settings=settings, estimates="declared").summary["average_jct"])

    fast = mean("allox", alpha=1.0)
    assert fast <= 1.15 * mean("allox.srpt")
    assert fast < mean("allox.sjf")
    assert fast < mean("allox", alpha=0.1)
