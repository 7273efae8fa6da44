"""Fair share: who has used least of late, by weight, comes first; usage fades."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.jobs import by_job, held_by, job_row

from gantline import simulate
from gantline.core.errors import UsageError
from gantline.core.inputs import Action, JobRequest
from gantline.core.memory import encode, plain
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.fair_share import FairShare


def run(jobs, cluster="1x1", round=10, **settings):
    return simulate(jobs, cluster, "fair-share", settings=settings, round=round)


def stream(user, first, count, every=0, queue=""):
    return [job_row(f"{user}{k}", at=first + every * k, user=user, queue=queue) for k in range(count)]


def served_by(done, who, until):
    """Seconds of service that a user or queue has had by then."""
    held = done.allocations.filter(done.allocations["start"] < until)
    names = by_job(done, "user")
    return sum(min(end, until) - start for job, start, end in held.select("job", "start", "end").iter_rows() if names[job] == who)


def by_the_page(jobs, gpus, half_life, every):
    """When each job ends if the user who has used least of late, for its weight, comes first: least decayed GPU-seconds, summed anew.

    `every`: seconds between decisions; 0: at arrivals, at ends, and at whole minutes, because the order moves by itself.
    """
    used, left, ends, now = [], {job["job"]: job["duration"] for job in jobs}, {}, 0.0
    users = list(dict.fromkeys(job["user"] for job in jobs))

    def usage(user):
        """Every second of use counts half as much after `half_life`."""
        fade = math.log(2.0) / half_life
        parts = ((amount, now - end, now - start) for whose, start, end, amount in used if whose == user)
        return sum(n * ((math.exp(-fade * a) - math.exp(-fade * b)) / fade if fade else b - a) for n, a, b in parts)

    while left:
        here = [job for job in jobs if job["job"] in left and job["arrival"] <= now]
        weight = {user: max((job["weight"] for job in here if job["user"] == user), default=1.0) for user in users}
        share = {user: round(usage(user) / weight[user], 6) for user in users}
        here.sort(key=lambda job: (share[job["user"]], users.index(job["user"]), job["arrival"], jobs.index(job)))
        free, chosen = gpus, []
        for job in here:
            if job["gpus"] <= free:
                chosen, free = [*chosen, job], free - job["gpus"]
        grid, coming = every or 60.0, [job["arrival"] for job in jobs if job["arrival"] > now]
        ending = [now + left[job["job"]] for job in chosen]
        until = min([(now // grid + 1) * grid, *([] if every else [*coming, *ending])])
        for job in chosen:
            end = min(until, now + left[job["job"]])
            used.append((job["user"], now, end, job["gpus"]))
            left[job["job"]] -= end - now
            if left[job["job"]] <= 0:
                ends[job["job"]] = end
                del left[job["job"]]
        now = until
    return ends


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
@pytest.mark.parametrize("every", [60.0, 0.0])
def test_all_that_was_used_is_charged_and_fades_from_when_it_was_used(every, executor):
    """Against the page's sentence, over random runs on both clocks."""
    for seed in range(25):
        draw = np.random.default_rng(seed)
        jobs, arrival = [], 0
        for number in range(int(draw.integers(4, 16))):
            arrival += int(draw.integers(0, 90))
            user = str(draw.choice(["ann", "bob", "cy"]))
            job = job_row(f"j{number}", int(draw.integers(1, 4)), float(draw.integers(5, 400)), at=float(arrival))
            jobs.append(job | {"user": user, "weight": {"ann": 1.0, "bob": 2.0, "cy": 1.0}[user]})
        half_life = float(draw.choice([45.0, 600.0, math.inf]))
        done = simulate(jobs, "1x4", "fair-share", settings={"half_life": half_life}, round=every or None, executor=executor)
        found = by_job(done, "finish")
        assert found == pytest.approx(by_the_page(jobs, 4, half_life, every), abs=1e-3), f"seed {seed}"


def test_jobs_that_end_between_two_rounds_are_charged():
    """Each of ann's jobs begins and ends within one round, and counts all the same: bob's come in between."""
    jobs = [job_row(f"{user}{k}", 1, 60, user=user) for user in ("ann", "bob") for k in range(10)]
    order = [name[:3] for name in run(jobs, round=60).jobs.sort("first_start")["job"]]
    assert order == ["ann", "bob"] * 10


def test_a_job_that_comes_back_is_not_charged_twice():
    """ana's job is put on hold with its 100 s charged, and let in again: bo, who has had 150 s meanwhile, is behind her."""
    jobs = [job_row("a", 1, 1000, user="ana")]
    jobs += [job_row(f"b{k}", 1, 50, at=90, user="bo") for k in range(8)]
    events = [JobRequest(100.0, Action.HOLD, "a"), JobRequest(250.0, Action.RELEASE, "a")]
    done = simulate(jobs, "1x1", "fair-share", settings={"half_life": "inf"}, node_events=tuple(events))
    spells = held_by(done, "a")["start"].to_list()
    assert spells[1] == 250.0


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


def test_a_half_life_of_nothing_is_refused():
    with pytest.raises(UsageError, match="above 0"):
        run(stream("ana", 0, 1), half_life=0)
