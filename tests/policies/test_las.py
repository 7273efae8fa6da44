"""Least attained service: newcomers first, equals in turns."""

from __future__ import annotations

import pytest

from gantline import simulate
from gantline.core.errors import GantlineError


def test_a_newcomer_runs_until_it_has_had_as_much_as_the_others():
    """At 60 s rounds: a has had 300 s when b comes; b catches up, then they take turns."""
    jobs = [{"job": "a", "arrival": 0, "gpus": 1, "duration": 600}, {"job": "b", "arrival": 300, "gpus": 1, "duration": 240}]
    run = simulate(jobs, "1x1", "las", round=60)
    assert dict(run.jobs.select("job", "finish").iter_rows()) == {"a": 840, "b": 540}
    assert run.jobs["preemptions"].to_list() == [1, 0]


def test_two_equals_share_the_gpu_round_by_round():
    jobs = [{"job": name, "arrival": 0, "gpus": 1, "duration": 180} for name in "ab"]
    run = simulate(jobs, "1x1", "las", round=60)
    assert run.allocations.sort("start")["job"].to_list() == list("ababab")
    assert sorted(run.jobs["finish"].to_list()) == [300, 360]


@pytest.mark.parametrize(("service", "first"), [("time", "wide"), ("gpu-time", "narrow")])
def test_service_is_seconds_or_gpu_seconds(service, first):
    """The wide job has run less time but used more GPUs."""
    jobs = [
        {"job": "narrow", "arrival": 0, "gpus": 1, "duration": 1000},
        {"job": "wide", "arrival": 100, "gpus": 4, "duration": 1000},
    ]
    run = simulate(jobs, "1x4", "las", settings={"service": service}, round=100, until=450)
    done = dict(run.jobs.select("job", "service").iter_rows())
    assert (done["wide"] > 100) == (first == "wide")


def test_an_unknown_measure_is_refused():
    with pytest.raises(GantlineError, match="gpu-time"):
        simulate([{"job": "a", "arrival": 0, "gpus": 1, "duration": 1}], "1x1", "las", settings={"service": "tokens"})
