"""The machine over HTTP: nodes, queues, the policy, snapshots, metrics, and the service's own life."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.live.service.asking import becomes, over
from tests.live.service.conftest import Running, until

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from gantline.core.snapshot_json import decode_snapshot
from gantline.live.runners.local.devices import cpus_usable
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options

SLEEP = ["sleep", "600"]


def test_a_cordoned_node_takes_nobody_and_a_drained_one_keeps_nobody(owner: Client) -> None:
    (first,) = owner.submit(SLEEP)
    becomes(owner, first)
    owner.cordon("cpu")
    (second,) = owner.submit(SLEEP)
    until(lambda: owner.nodes()[0]["state"] == "cordoned")
    assert owner.job(first)["state"] == "running"
    assert owner.drain("cpu")["jobs"] == [first]
    becomes(owner, first, "pending")
    assert owner.job(second)["state"] == "pending"
    owner.uncordon("cpu")
    until(lambda: {owner.job(first)["state"], owner.job(second)["state"]} == {"running"})
    owner.cancel(first, second)
    with pytest.raises(NotFoundError, match="no node 'gpu0'"):
        owner.cordon("gpu0")


def test_one_device_of_a_node_is_cordoned_or_drained_by_itself(owner: Client) -> None:
    (first,) = owner.submit(SLEEP)
    (device,) = until(lambda: (job := owner.job(first))["state"] == "running" and job["devices"])
    owner.cordon("cpu:3")
    (rest,) = owner.submit(SLEEP, resources={"gpus": 3})
    assert owner.job(rest)["state"] == "pending", "two are free, and may be had"
    assert owner.drain(device)["jobs"] == [first]
    until(lambda: (job := owner.job(first))["state"] == "running" and job["devices"] != [device])
    assert [one["state"] for one in owner.nodes()[0]["devices"]].count("cordoned") == 2
    assert owner.nodes()[0]["state"] == "up"
    owner.uncordon(device)
    owner.uncordon("cpu:3")
    becomes(owner, rest)
    owner.cancel(first, rest)
    with pytest.raises(NotFoundError, match="no node 'cpu:4'"):
        owner.cordon("cpu:4")


def test_a_queue_keeps_to_its_quota_until_it_may_have_more(owner: Client) -> None:
    owner.set_queue("small/one", quota=1, borrow=0)
    ids = [owner.submit(SLEEP, queue="small/one")[0] for _ in range(2)]
    becomes(owner, ids[0])
    late = until(lambda: (job := owner.job(ids[1]))["reason"] == "quota" and job)
    assert late["state"] == "pending"
    assert late["why"] == f"queue 'small/one' may hold 1; it holds 1: {ids[0]} (1)"
    assert late["why"] in owner.explain(ids[1])["lines"][0]
    assert [(queue["quota"], queue["gpus"]) for queue in owner.queues() if queue["name"] == "small/one"] == [(1, 1)]
    with pytest.raises(RefusedError, match="asks for 2 devices, and queue 'small/one' may hold 1 at most"):
        owner.submit(SLEEP, queue="small/one", resources={"gpus": 2})
    owner.set_queue("small/one", quota=1, borrow=1)
    becomes(owner, ids[1])
    owner.cancel(*ids)
    owner.drop_queue("small/one")
    with pytest.raises(NotFoundError, match="no queue"):
        owner.drop_queue("small/one")
    with pytest.raises(UsageError, match="not a queue"):
        owner.set_queue("a//b", quota=1)


def test_a_parents_quota_binds_what_is_borrowed_is_given_back_and_a_misspelled_queue_is_refused(owner: Client) -> None:
    owner.set_queue("lab", quota=1, borrow=math.inf)
    assert {queue["name"]: queue["borrow"] for queue in owner.queues()}["lab"] == "inf"
    owner.set_queue("lab/nlp")
    owner.set_queue("prod", quota=3)
    borrowed = [owner.submit(SLEEP, queue="lab/nlp")[0] for _ in range(4)]
    until(lambda: all(owner.job(id)["state"] == "running" for id in borrowed))
    (owned,) = owner.submit(SLEEP, queue="prod", resources={"gpus": 3})
    becomes(owner, owned)
    waiting = until(lambda: len(found := [id for id in borrowed if owner.job(id)["state"] == "pending"]) == 3 and found)
    until(lambda: owner.job(waiting[-1])["reason"] == "quota")
    assert "queue 'lab' has a quota of 1 and finds nothing idle to borrow" in owner.job(waiting[-1])["why"]
    owner.cancel(*borrowed, owned)
    with pytest.raises(NotFoundError, match=r"no queue 'lab/npl'.*lab/nlp"):
        owner.submit(SLEEP, queue="lab/npl")
    for name in ("lab", "lab/nlp", "prod"):
        owner.drop_queue(name)


def test_cpus_and_memory_are_booked_and_what_the_machine_does_not_have_is_refused(owner: Client) -> None:
    has = cpus_usable()
    with pytest.raises(RefusedError, match=f"asks for {has + 1:g} CPUs, and cpu has {has:g}"):
        owner.submit(SLEEP, resources={"gpus": 1, "cpus": has + 1})
    with pytest.raises(RefusedError, match="GB of memory, and cpu has"):
        owner.submit(SLEEP, resources={"gpus": 1, "memory": "900TB"})
    (all_of_them,) = owner.submit(SLEEP, resources={"gpus": 1, "cpus": has})
    becomes(owner, all_of_them)
    (waits,) = owner.submit(SLEEP, resources={"gpus": 1, "cpus": 1})
    until(lambda: owner.job(waits)["reason"] not in ("", "arrived"))
    assert owner.job(waits)["state"] == "pending"
    owner.cancel(all_of_them)
    becomes(owner, waits)
    owner.cancel(waits)


def test_the_policy_is_changed_while_jobs_run(owner: Client) -> None:
    (id,) = owner.submit(SLEEP)
    becomes(owner, id)
    assert owner.status()["policy"] == "fifo"
    with pytest.raises(RefusedError, match="gives every job whole devices"):
        owner.submit(SLEEP, resources={"share": 0.5})
    assert owner.use_policy("sharing")["notes"] == []
    (half,) = owner.submit(SLEEP, resources={"share": 0.5})
    assert f"whole one from policy 'las': {half}" in owner.use_policy("las")["notes"][0]
    owner.cancel(half)
    until(lambda: owner.status()["policy"] == "las")
    assert owner.job(id)["state"] == "running"
    with pytest.raises(NotFoundError, match="no policy 'lass'"):
        owner.use_policy("lass")
    with pytest.raises(RefusedError, match=r"'/tmp/evil\.py:Evil' is a file, .*gantline up --policy FILE\.py"):
        owner.use_policy("/tmp/evil.py:Evil")
    owner.use_policy("fifo")
    owner.cancel(id)


def test_a_snapshot_is_one_that_policies_read(owner: Client) -> None:
    (id,) = owner.submit(SLEEP)
    becomes(owner, id)
    told = owner.snapshot()
    instant = decode_snapshot(told["snapshot"])
    assert told["policy"] == "fifo"
    assert id in instant.jobs.ids
    owner.cancel(id)


def test_metrics_are_prometheus_text_and_count_what_happened(owner: Client) -> None:
    owner.set_queue("measured")
    (id,) = owner.submit(["true"], queue="measured")
    over(owner, id)
    (waiting,) = owner.submit(SLEEP, resources={"gpus": 4}, queue="measured")
    becomes(owner, waiting)
    found = {sample.name: sample for family in text_string_to_metric_families(owner.metrics()) for sample in family.samples}
    assert found["gantline_gpus"].value == 4
    assert found["gantline_gpus_inuse"].value == 4
    assert found["gantline_jobs_running"].value == 1
    assert found["gantline_jobs_created_total"].value == len(owner.jobs())
    assert found["gantline_jobs_completed_total"].value >= 1
    assert found["gantline_resched_duration_seconds_count"].value == found["gantline_resched_total"].value > 0
    assert found["gantline_scheduler_up"].value == 1
    assert found["gantline_job_gpus"].labels["job"] == waiting
    assert found["gantline_queue_gpus_inuse"].labels["queue"] == "measured"
    assert {"gantline_resizes_total", "gantline_restarts_total", "gantline_device_up", "gantline_job_wait_seconds_sum"} <= set(found)
    voda = "voda_scheduler_cpu_scheduler_"
    same = {name: sample.value for name, sample in found.items() if name.startswith(voda) and name != f"{voda}info"}
    assert same == {name: found[f"gantline_{name.removeprefix(voda)}"].value for name in same}
    assert {f"{voda}{name}" for name in (
        "info", "jobs_created_total", "jobs_deleted_total", "jobs_completed_total", "jobs_failed_total", "jobs_ready", "jobs_waiting",
        "jobs_running", "gpus", "gpus_inuse", "resched_total", "resched_duration_seconds_sum", "resched_duration_seconds_count",
    )} <= set(found)  # fmt: skip
    assert found["voda_scheduler_training_service_jobs_created_total"].value == found["gantline_jobs_created_total"].value
    owner.cancel(waiting)


def test_the_next_service_adopts_what_still_runs_and_forgets_nothing(tmp_path: Path) -> None:
    options = Options(Home(tmp_path / "home"), devices="cpu:2")
    first = Running(options).start()
    client = first.client()
    (lost,) = client.submit(["sh", "-c", "[ $GANTLINE_EPOCH -gt 1 ]"])
    (job,) = over(client, lost)
    assert job["state"] == "failed"
    done, running, waiting = (client.submit(command, resources={"gpus": 2})[0] for command in (["sleep", "0.1"], SLEEP, SLEEP))
    becomes(client, running)
    client.set_queue("kept", quota=3)
    client.use_policy("sjf")
    until(lambda: client.status()["policy"] == "sjf")
    before, token = client.job(running), first.token
    served = client.job(done)["service"]
    first.stop(drain=False)
    with pytest.raises(UnreachableError):
        Client(home=tmp_path / "home")
    second = Running(Options(Home(tmp_path / "home"))).start()  # with the devices of last time
    client = Client(second.url, token)
    assert second.url == first.url, "jobs that still run find it where it was"
    after = client.job(running)
    assert (after["state"], after["epoch"], after["devices"]) == ("running", before["epoch"], before["devices"])
    ended = client.job(done)
    assert (ended["state"], ended["gpus"], ended["max_gpus"]) == ("succeeded", 2, 2)
    assert ended["service"] == served > 0
    assert client.job(waiting)["state"] == "pending"
    assert client.status()["policy"] == "sjf"
    assert [(queue["name"], queue["quota"]) for queue in client.queues() if queue["quota"]] == [("kept", 3)]
    client.hold(waiting)
    client.requeue(lost)  # which failed in the life before, and comes behind those that wait
    client.cancel(running)
    becomes(client, lost, "succeeded")
    client.release(waiting)
    becomes(client, waiting)
    second.stop()  # with its jobs
    third = Running(Options(Home(tmp_path / "home"), devices="cpu:3")).start()
    client = third.client()
    becomes(client, waiting)
    assert client.status()["devices"]["cpu"]["count"] >= 3, "another machine is another node"
    assert client.job(waiting)["epoch"] > 1, "it was stopped, and comes back"
    client.cancel(waiting)
    third.stop()
