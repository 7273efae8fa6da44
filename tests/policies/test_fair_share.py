"""Fair share: who has used least of late, by weight, comes first; usage fades."""

from __future__ import annotations

import numpy as np
import pytest

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.memory import encode, plain
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.fair_share import FairShare


def run(jobs, cluster="1x1", round=10, **settings):
    return simulate(jobs, cluster, "fair-share", settings=settings, round=round)


def stream(user, first, count, every=0, queue=""):
    return [
        {"job": f"{user}{k}", "arrival": first + every * k, "gpus": 1, "duration": 100, "user": user, "queue": queue} for k in range(count)
    ]


def served_by(done, who, until):
    """Seconds of service that a user or queue has had by then."""
    held = done.allocations.filter(done.allocations["start"] < until)
    names = dict(done.jobs.select("job", "user").iter_rows())
    return sum(min(end, until) - start for job, start, end in held.select("job", "start", "end").iter_rows() if names[job] == who)


def test_a_user_with_many_jobs_gets_no_more_than_one_with_few():
    done = run(stream("ana", 0, 20) + stream("bo", 0, 5))
    assert served_by(done, "ana", 600) == pytest.approx(300, abs=20)
    assert served_by(done, "bo", 600) == pytest.approx(300, abs=20)


def test_a_weight_of_three_is_three_times_the_share():
    jobs = [{**job, "weight": 3.0 if job["user"] == "ana" else 1.0} for job in stream("ana", 0, 20) + stream("bo", 0, 20)]
    done = run(jobs)
    assert served_by(done, "ana", 800) == pytest.approx(600, abs=30)


def test_what_was_used_long_ago_is_forgotten():
    """ana had the cluster to herself for 2,000 s. With a short half-life bo need not be made up for that, without one he must."""
    jobs = stream("ana", 0, 60) + stream("bo", 2000, 40)
    forgetful = run(jobs, half_life=50.0)
    never = run(jobs, half_life="inf")
    assert served_by(never, "bo", 4000) == pytest.approx(2000, abs=20)
    assert served_by(forgetful, "bo", 4000) == pytest.approx(1050, abs=120)


def test_queues_come_before_users():
    """One user in the first queue, three in the second: each queue gets half, whatever the number of its users."""
    jobs = stream("ana", 0, 20, queue="vision")
    for user in ("bo", "cy", "di"):
        jobs += stream(user, 0, 20, queue="speech")
    done = run(jobs, by="queue,user")
    assert served_by(done, "ana", 1200) == pytest.approx(600, abs=30)
    assert served_by(done, "bo", 1200) == pytest.approx(200, abs=30)


def test_without_preemption_running_gangs_stay():
    done = run(stream("ana", 0, 3) + stream("bo", 10, 3), preempt="false")
    assert done.summary["preemptions"] == 0


def test_what_an_older_version_remembered_is_read():
    """Charges were once kept by the names of rows: a service that is upgraded goes on as if they had always been kept as they are now."""
    jobs = [{"id": "a", "user": "ana", "service": 50.0}, {"id": "b", "user": "bo"}, {"id": "c", "user": "bo", "service": 90.0}]
    shared = {"usage": {"user:ana": 70.0, "user:bo": 80.0}, "at": 90.0}
    now = {**shared, "rows": np.array([0, 2]), "spent": np.array([50.0, 85.0])}
    once = {**shared, "charged": {"2": 85.0, "0": 50.0}}
    plans = [
        FairShare().decide(decode_snapshot({"cluster": "1x2", "now": 100.0, "jobs": jobs, "memory": plain(had)})) for had in (now, once)
    ]
    assert plans[0].memory["usage"]["user:bo"] == pytest.approx(85.0, rel=1e-3)
    assert encode(plans[0].memory) == encode(plans[1].memory)


@pytest.mark.parametrize(("settings", "told"), [({"by": "group"}, "queue,user"), ({"half_life": 0}, "above 0")])
def test_a_parameter_out_of_range_is_refused(settings, told):
    with pytest.raises(UsageError, match=told):
        run(stream("ana", 0, 1), **settings)
