"""Policy antman with the model of guests: hosts do not notice them, shares rise and fall, gangs reserve, quotas bind."""

from __future__ import annotations

from typing import Any

import pytest
from tests.jobs import by_job

from gantline.core.errors import GantlineError
from gantline.models.sharing.device_contention import DeviceContention
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

REST = 1.0 + DeviceContention().rest


def job(name: str, duration: float, **more: Any) -> dict[str, Any]:
    return {"job": name, "arrival": 0.0, "gpus": 1, "duration": duration, "gpu_use": 0.6, "opportunistic": 0.0, "user": "ann"} | more


def guest(name: str, duration: float, **more: Any) -> dict[str, Any]:
    return job(name, duration, gpu_use=1.0, opportunistic=1.0) | more


def run(jobs: list[dict[str, Any]], cluster: str = "1x1", **options: Any) -> Run:
    settings = {name: options.pop(name) for name in list(options) if name in ("quotas", "patience", "step", "tolerance", "busy")}
    return simulate(jobs, cluster, "antman", settings=settings, performance="guests", **options)


def facts(found: Run, column: str = "finish") -> dict[str, Any]:
    return by_job(found, column)


def test_a_host_ends_as_if_alone_and_the_guest_gets_what_it_leaves_idle() -> None:
    found = facts(run([job("host", 36000), guest("guest", 10000)]))

    assert 36000 < found["host"] < 36000 * 1.03
    assert 10000 / 0.4 < found["guest"] < 10000 / 0.3  # four tenths are idle


def test_plain_sharing_would_slow_the_host_down() -> None:
    jobs = [job("host", 36000), guest("guest", 36000)]
    packed = simulate([each | {"gpu_demand": 0.5} for each in jobs], "1x1", "sharing", performance="guests")

    assert facts(packed)["host"] > 1.5 * 36000


def test_a_guest_without_a_host_has_the_device_to_itself_until_one_comes() -> None:
    found = run([guest("guest", 1000), job("host", 3600, arrival=600.0)])

    assert facts(found, "first_start") == {"guest": 0.0, "host": 600.0}
    assert facts(found)["host"] < 600 + 3600 * 1.03
    assert facts(found, "preemptions")["guest"] == 0


def test_shares_fall_at_once_when_a_host_becomes_busier() -> None:
    host = job("host", 36000, gpu_use=0.3, gpu_use_peak=0.9, gpu_phase=3600.0)

    assert facts(run([host, guest("guest", 1e6)], until=80000.0))["host"] < 36000 * 1.03


def test_workloads_on_one_device_share_it_evenly() -> None:
    found = facts(run([guest("a", 1000, gpu_use=0.5), guest("b", 1000, gpu_use=0.5)]))

    assert found["a"] == found["b"] == pytest.approx(2000 * REST)


def test_a_gang_that_does_not_fit_reserves_devices_from_other_gangs_but_not_from_guests() -> None:
    jobs = [job("first", 1000), job("wide", 100, gpus=2, arrival=1.0), job("late", 100, arrival=2.0), guest("guest", 50, arrival=3.0)]
    starts = facts(run(jobs, "1x2"), "first_start")

    assert starts["guest"] == 3.0
    assert starts["wide"] == pytest.approx(1000.0, rel=0.03)
    assert starts["late"] > starts["wide"]


def test_two_wide_gangs_do_not_wait_for_each_other() -> None:
    found = run([job("a", 100, gpus=1), job("b", 100, gpus=3, arrival=1.0), job("c", 100, gpus=4, arrival=2.0)], "2x2")

    assert found.summary["completed"] == 3


def test_a_guest_may_be_on_the_devices_of_several_hosts() -> None:
    found = run([job("left", 3600), job("right", 3600), guest("guest", 300, gpus=2, arrival=1.0)], "1x2")

    assert facts(found, "first_start")["guest"] == 1.0
    assert max(facts(found)[name] for name in ("left", "right")) < 3600 * 1.03


def test_an_owner_has_its_memory_and_the_rest_goes_to_the_guest_that_gains_most_by_it() -> None:
    small = guest("small", 1000, gpu_use=0.2, device_memory=10.0, memory_floor=4.0)
    large = guest("large", 1000, gpu_use=0.2, device_memory=18.0, memory_floor=4.0)
    found = facts(run([small, large], "gpu:1x1/20d"))

    assert found["small"] < found["large"]  # both have half of the device; the small one has all of its memory
    assert found["small"] == pytest.approx(2000 * REST)


def test_a_guest_stays_away_or_leaves_where_an_owner_needs_the_memory() -> None:
    host = job("host", 1000, device_memory=30.0, arrival=100.0)
    found = run([guest("guest", 500, device_memory=10.0, memory_floor=4.0), host], "gpu:1x1/32d")

    assert facts(found, "first_start") == {"guest": 0.0, "host": 100.0}
    assert facts(found)["guest"] == pytest.approx(1100 + 400)  # it goes on when the host has ended
    assert facts(found)["host"] == pytest.approx(1100)


def test_a_guest_shrinks_for_an_owner_without_leaving() -> None:
    host = job("host", 1000, device_memory=24.0, arrival=100.0)
    found = run([guest("guest", 150, device_memory=10.0, memory_floor=4.0), host], "gpu:1x1/32d")

    assert facts(found, "first_start")["host"] == 100.0
    assert facts(found, "preemptions")["guest"] == facts(found, "restarts")["guest"] == 0


def test_quotas_bound_what_the_guaranteed_jobs_of_a_user_hold() -> None:
    jobs = [job("a", 100), job("b", 100), job("c", 100, user="bob")]

    assert facts(run(jobs, "1x3", quotas="ann=1"), "first_start") == {"a": 0.0, "b": 100.0, "c": 0.0}


def test_an_impatient_job_starts_as_a_guest_and_becomes_guaranteed_when_there_is_room() -> None:
    jobs = [job("host", 1000), job("late", 1000, gpu_use=0.5)]

    assert facts(run(jobs), "first_start")["late"] == pytest.approx(1000)
    found = run(jobs, patience=60.0)
    assert facts(found, "first_start")["late"] == 60.0
    assert facts(found)["late"] < 2000


def test_quotas_that_are_none_are_refused() -> None:
    with pytest.raises(GantlineError, match=r"'quotas' has 'ann'.*alice=8"):
        run([job("a", 1)], quotas="ann")


@pytest.mark.parametrize(("name", "value"), [("gpu_use", 0.0), ("gpu_use", 1.5), ("gpu_use_peak", -0.5), ("gpu_phase", 0.0)])
def test_parts_of_a_device_that_are_none_are_refused(name: str, value: float) -> None:
    with pytest.raises(GantlineError, match=f"'{name}'.*job 'a' has {value}"):
        run([job("a", 1) | {name: value}])
