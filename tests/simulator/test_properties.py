"""Promises that hold on any cluster, trace, policy and failure: nobody holds a device twice, gangs are whole, device time adds up."""

from __future__ import annotations

import os
import subprocess
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline import Node, NodeEvent, simulate
from gantline.traces.generators import generate

POLICIES = ["fifo", "sjf", "srtf", "srsf", "smallest", "las", "tiresias", "fair-share"]


@st.composite
def worlds(draw):
    """A cluster, jobs that fit it, how they are scheduled, and perhaps a node that fails."""
    nodes, per = draw(st.integers(1, 4)), draw(st.sampled_from([1, 2, 4]))
    gaps = draw(st.lists(st.sampled_from([0.0, 1.0, 50.0, 400.0]), min_size=1, max_size=14))
    jobs, arrival = [], 0.0
    for number, gap in enumerate(gaps):
        arrival += gap
        gpus, duration = draw(st.integers(1, nodes * per)), draw(st.integers(1, 900))
        jobs.append(
            {"job": f"j{number}", "arrival": arrival, "gpus": gpus, "duration": float(duration), "user": draw(st.sampled_from("ab"))}
        )
    events = []
    if nodes > 1 and draw(st.booleans()):
        down = draw(st.floats(0, 1000, allow_nan=False))
        events = [NodeEvent(down, "node0", "down"), NodeEvent(down + draw(st.floats(1, 500)), "node0", "up")]
    how = {
        "round": draw(st.sampled_from([None, 60.0])),
        "placement": draw(st.sampled_from(["first-free", "consolidated:preferred", "random"])),
        "costs": draw(st.sampled_from(["", "30", "start=5,resume=20,checkpoint=100"])),
        "min_run": draw(st.sampled_from([0.0, 120.0])),
        "estimates": draw(st.sampled_from(["oracle", "noisy:0.5", "history"])),
        "node_events": events,
    }
    return f"{nodes}x{per}", jobs, draw(st.sampled_from(POLICIES)), how


@given(worlds())
def test_no_device_is_held_twice_gangs_are_whole_and_every_job_ends(world):
    cluster, jobs, policy, how = world
    run = simulate(jobs, cluster, policy, **how)
    assert run.summary["completed"] == len(jobs)
    assert not run.incidents
    asked = {job["job"]: job["gpus"] for job in jobs}
    for row in run.allocations.iter_rows(named=True):
        assert len(set(row["devices"])) == len(row["devices"]) == row["gpus"] == asked[row["job"]]
    held = run.allocations.explode("devices").sort("devices", "start")
    for (device,), spans in held.group_by("devices", maintain_order=True):
        ends, starts = spans["end"].to_list()[:-1], spans["start"].to_list()[1:]
        assert all(a <= b + 1e-6 for a, b in zip(ends, starts)), f"device {device} is held twice"
    if how["node_events"]:  # the next round sees them
        down, up = (event.time for event in how["node_events"])
        inside = held.filter((pl.col("start") > down + 60.0) & (pl.col("start") < up) & (pl.col("devices") < int(cluster.split("x")[1])))
        assert inside.is_empty(), "a device of a node that is down is given"


@given(
    worlds(),
    st.sampled_from(["srtf", "las", "gandiva", "sharing", "allox.srpt", "themis", "afs"]),
    st.lists(st.tuples(st.sampled_from([5.0, 60.0, 300.0]), st.integers(0, 15), st.booleans()), min_size=1, max_size=4),
)
def test_nobody_new_gets_a_device_that_is_cordoned_or_whose_node_drains(world, policy, cordons):
    cluster, jobs, _, how = world
    nodes, per = map(int, cluster.split("x"))
    events, shut, end = [], [], 2000.0
    for at, place, whole in cordons:
        node = place % nodes
        name, devices = (
            (f"node{node}", range(node * per, node * per + per)) if whole else (f"node{node}:{place % per}", [node * per + place % per])
        )
        events += [NodeEvent(at, name, "drain"), NodeEvent(end, name, "up")]
        shut += [(device, at) for device in devices]
    how = {
        **how,
        "node_events": sorted(events, key=lambda event: event.time),
        "round": None,
    }  # changes are seen at once, not at the next round
    run = simulate(jobs, cluster, policy, **how)
    assert run.summary["completed"] == len(jobs)
    before: dict[str, dict] = {}
    for row in run.allocations.sort("start").iter_rows(named=True):
        last = before.get(row["job"], {"end": -1.0, "devices": []})
        kept = last["devices"] if last["end"] == row["start"] else []
        for device, at in shut:
            assert not (at <= row["start"] < end and device in row["devices"] and device not in kept), f"{row['job']} got {device}"
        before[row["job"]] = row


@given(worlds())
def test_work_done_is_work_asked_for_and_saved_work_is_never_lost(world):
    cluster, jobs, policy, how = world
    run = simulate(jobs, cluster, policy, **how)
    for row in run.jobs.iter_rows(named=True):
        assert row["service"] == pytest.approx(row["duration"] + row["work_lost"], abs=1e-6)
        if "checkpoint" not in how["costs"]:
            assert row["work_lost"] == 0.0  # without an interval work is always saved
    stops = run.allocations.filter(pl.col("reason").is_in(["preempted", "moved", "deferred"]))
    assert run.summary["preemptions"] == stops.height


@given(worlds())
def test_the_same_world_gives_the_same_log(world):
    cluster, jobs, policy, how = world
    first, again = (simulate(jobs, cluster, policy, seed=3, **how).summary["log_hash"] for _ in range(2))
    assert first == again


@given(worlds(), st.sampled_from(["fifo", "srtf", "las"]))
def test_a_node_that_joins_loses_no_job(world, policy):
    cluster, jobs, _, how = world
    per = int(cluster.split("x")[1])
    joins = [NodeEvent(50.0, "late", "join", Node("late", gpus=per))]
    run = simulate(jobs, cluster, policy, **{**how, "node_events": joins})
    assert run.summary["completed"] == len(jobs)


@given(worlds())
def test_first_come_is_first_served(world):
    cluster, jobs, _, how = world
    run = simulate(jobs, cluster, "fifo", **{**how, "node_events": (), "placement": "first-free"})
    starts = run.jobs["first_start"].to_list()
    assert starts == sorted(starts)


def test_the_log_hash_does_not_depend_on_the_process():
    program = (
        "from gantline import simulate; from gantline.traces.generators import generate;"
        "print(simulate(generate('day', seed=1), '8x8', 'las', round=60, placement='random', seed=5).summary['log_hash'])"
    )
    other = {**os.environ, "PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"}
    there = subprocess.run([sys.executable, "-c", program], env=other, capture_output=True, text=True, check=True).stdout.strip()
    here = simulate(generate("day", seed=1), "8x8", "las", round=60, placement="random", seed=5)
    assert there == here.summary["log_hash"]
