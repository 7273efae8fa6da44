"""Windows over HTTP: who may reserve what, and what nodes, jobs and questions say of it."""

from __future__ import annotations

import time
from datetime import datetime

import pytest
from tests.live.service.asking import becomes
from tests.live.service.conftest import Running, until

from gantline.cli.live.cluster import wall_time
from gantline.core.errors import GantlineError, NotFoundError, RefusedError, UsageError
from gantline.live.service.client import Client

SLEEP = ["sleep", "600"]


def test_reserved_devices_are_named_by_nodes_jobs_and_questions(owner: Client) -> None:
    told = owner.reserve(7200.0, start=time.time() + 3600.0, gpus=2, name="maint")
    assert (told["state"], told["places"]) == ("to come", ["cpu:2", "cpu:3"])
    assert [one["name"] for one in owner.reservations()] == ["maint"]
    (node,) = owner.nodes()
    assert (node["reserved"], node["cordoned"]) == (["maint"], [])
    assert [one["state"] for one in node["devices"]] == ["up", "up", "reserved", "reserved"]
    (wide,) = owner.submit(SLEEP, resources={"gpus": 3})
    job = until(lambda: (job := owner.job(wide))["reason"] == "window" and job)
    assert "cpu:2, cpu:3 reserved as 'maint' from 20" in job["why"]
    assert "its length is not known, so that it might not be over by then" in job["why"]
    assert "reserved as 'maint'" in owner.get(f"/v1/jobs/{wide}/explain")["lines"][0]
    owner.set(wide, estimate="10m")
    becomes(owner, wide)
    owner.cancel(wide)
    assert owner.cancel_reservation("maint")["name"] == "maint"
    assert owner.reservations() == []


def test_a_window_for_a_queue_is_used_by_its_jobs(owner: Client) -> None:
    owner.set_queue("prod")
    owner.reserve(3600.0, places=["cpu:0", "cpu:1", "cpu:2"], name="prod-only", queues=["prod"])
    others = [owner.submit(SLEEP)[0] for _ in range(2)]
    (theirs,) = owner.submit(SLEEP, queue="prod", resources={"gpus": 2})
    becomes(owner, theirs)
    until(lambda: sorted(owner.job(one)["state"] for one in others) == ["pending", "running"])
    assert set(owner.job(theirs)["devices"]) <= {"cpu:0", "cpu:1", "cpu:2"}
    owner.cancel(*others, theirs)
    owner.cancel_reservation("prod-only")


def test_what_cannot_be_is_refused(owner: Client, service: Running) -> None:
    with pytest.raises(RefusedError, match="5 devices are asked for, and 4 are up"):
        owner.reserve(60.0, gpus=5)
    with pytest.raises(NotFoundError, match="no queue 'prdo'"):
        owner.reserve(60.0, gpus=1, queues=["prdo"])
    with pytest.raises(NotFoundError, match=r"no user 'nobody-known' .*gantline token create nobody-known"):
        owner.reserve(60.0, gpus=1, users=["nobody-known"])
    with pytest.raises(UsageError, match="so many nodes"):
        owner.reserve(60.0, gpus=1, nodes=1)
    with pytest.raises(RefusedError, match="over already"):
        owner.reserve(60.0, gpus=1, start=time.time() - 3600.0)
    with pytest.raises(GantlineError, match="role"):
        service.client("bo").reserve(60.0, gpus=1)
    assert service.client("bo").reservations() == []


def test_times_are_read_as_people_write_them() -> None:
    now = datetime(2026, 11, 17, 15, 30).timestamp()
    assert wall_time("18:00", now) == datetime(2026, 11, 17, 18, 0).timestamp()
    assert wall_time("08:00", now) == datetime(2026, 11, 18, 8, 0).timestamp()
    assert wall_time("2026-12-01T08:00", now) == datetime(2026, 12, 1, 8, 0).timestamp()
    assert wall_time("+90m", now) == now + 5400.0
    for odd in ("tomorrow", "25:00", "18:00:61", "2026-13-01"):
        with pytest.raises(UsageError, match="--from"):
            wall_time(odd, now)
