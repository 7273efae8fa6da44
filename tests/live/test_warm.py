"""The dress rehearsal of a policy: it ends, whatever the machine has, and tells what went wrong."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from gantline.core.cluster_spec import parse_cluster
from gantline.core.policy import OrderPolicy
from gantline.live.scheduler.decision_thread import rehearse
from gantline.policies.registry import make_policy


@dataclass(frozen=True)
class Broken(OrderPolicy):
    def key(self, snapshot):
        raise ValueError("no idea")


@pytest.mark.parametrize("cluster", ["cpu:1x4", "1x1", "h200:1x1,cpu:1x16", "cpu:1x0/4c"])
@pytest.mark.parametrize("policy", ["fifo", "las", "gavel.max_min_fairness_perf"])
def test_it_serves_made_up_jobs_to_their_end(policy, cluster):
    assert rehearse(make_policy(policy), parse_cluster(cluster)) == []


def test_a_policy_that_fails_is_told_of():
    assert "no idea" in rehearse(Broken(), parse_cluster("1x4"))[0]
