"""One scheduler, two clocks: through orders and reports without delay, every number is what it is on virtual time, byte for byte."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.jobs import job_row
from tests.simulator.workloads import Workload, workloads

from gantline.core.cluster import Node
from gantline.core.columns import Job
from gantline.core.inputs import NodeEvent
from gantline.lab.conformance.scenarios import some_jobs
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.trace import Trace

EVENTS = (
    NodeEvent(90.0, "node0", "down"),
    NodeEvent(150.0, "node2", "drain"),
    NodeEvent(260.0, "node0", "up"),
    NodeEvent(400.0, "new", "join", Node("new", "gpu", 4)),
    NodeEvent(700.0, "node2", "up"),
    NodeEvent(820.0, "node1", "down"),
)
OPTIONS: dict[str, dict[str, Any]] = {
    "events": {},
    "rounds": {"round": 60.0},
    "consolidated": {"placement": "consolidated", "round": 30.0},
    "random placement": {"placement": "random", "seed": 5},
    "skew": {"placement": "skew:0.4", "regime": "tiresias"},
    "load limit": {"admission": "load-limit:1.2", "round": 60.0},
    "quota": {"admission": "quota:user=8,queue=12"},
    "noisy": {"estimates": "noisy:1.0", "seed": 3},
    "noisy in rounds": {"estimates": "noisy:1.0", "seed": 4, "round": 45.0},
    "history": {"estimates": "history"},
    "costs": {"costs": "start=5,resume=15,resize=7,move=9,checkpoint=90"},
    "minimum run": {"min_run": 100.0},
    "late decisions": {"latency": 7.0, "costs": "10"},
    "late decisions in rounds": {"latency": 70.0, "round": 60.0},
    "nodes": {"node_events": EVENTS, "costs": "resume=10,checkpoint=60"},
    "nodes in rounds": {"node_events": EVENTS, "costs": "resume=10,checkpoint=60", "round": 60.0, "placement": "random"},
    "nodes, late": {"node_events": EVENTS, "latency": 20.0},
    "blox": {"regime": "blox", "round": 300.0, "placement": "consolidated"},
    "blox with nodes": {"regime": "blox", "round": 300.0, "node_events": EVENTS},
    "tiresias": {"regime": "tiresias"},
    "tracked": {"track": (3, 6), "round": 60.0},
    "until": {"until": 500.0},
    "until in rounds": {"until": 507.0, "round": 60.0},
    "stepping": {"round": 60.0, "step_all": True},
}
SOME = Trace.from_records(some_jobs("two clocks"))
POLICIES: dict[str, dict[str, Any]] = {
    "fifo": {"backfill": "easy"},
    "las": {"service": "gpu-time"},
    "srtf": {},
    "tiresias": {"limits": (100.0, 1000.0), "promote": 2.0},
    "allox.srpt": {},
    "fair-share": {},
    "voda.afs_l": {},
    "gavel.max_min_fairness": {},
}


def told(run: Run) -> tuple[str, str, int]:
    """The per-job file, all that was held, and what the policy lost."""
    return run.jobs.write_csv(), run.summary["log_hash"], run.summary["incidents"]


def charged(run: Run) -> list[tuple[str, float, float, tuple[int, ...], float]]:
    """Every interval: the job, from when to when, its devices, and the GPU-seconds that it is charged for them."""
    table = run.allocations.iter_rows(named=True)
    return [(one["job"], one["start"], one["end"], tuple(one["devices"]), one["gpus"] * (one["end"] - one["start"])) for one in table]


def both(*what: Any, **options: Any) -> tuple[Run, Run]:
    return simulate(*what, **options), simulate(*what, **options, executor="acknowledged")


def assert_same(jobs: Any, *what: Any, **options: Any) -> None:
    virtual, acknowledged = both(jobs, *what, **options)
    assert acknowledged.jobs.write_csv() == virtual.jobs.write_csv()
    assert charged(acknowledged) == charged(virtual)
    assert acknowledged.tables.F[Job.GPUTIME].tolist() == virtual.tables.F[Job.GPUTIME].tolist()
    assert acknowledged.summary["log_hash"] == virtual.summary["log_hash"]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_every_option(options: dict[str, Any], policy: str) -> None:
    settings = {} if options.get("regime") == "blox" else POLICIES[policy]  # blox decides itself what these say
    assert_same(SOME, "4x4", make_policy(policy, settings), **options)


@pytest.mark.parametrize("policy", ["srtf", "allox", "allox.srpt", "drf-ext", "gavel.max_min_fairness_perf"])
def test_jobs_with_alternatives(policy: str) -> None:
    jobs = [{**job, "options": f"gpu:{job['gpus']}={job['duration']}|cpu:0/4={2 * job['duration']}"} for job in some_jobs("ways")]
    assert_same(jobs, "2x8,cpu:2x0/8c", policy, costs="resume=3,move=2")


@FEWER
@given(
    workload=workloads(whole=False),
    policy=st.sampled_from(["fifo", "srtf", "las", "tiresias", "fair-share", "drf-sjf"]),
    options=st.sampled_from([OPTIONS[name] for name in ("events", "rounds", "costs", "noisy", "late decisions", "tiresias")]),
)
def test_random_workloads(workload: Workload, policy: str, options: dict[str, Any]) -> None:
    assert_same(workload.records, workload.spec, policy, **options)


def world_with_windows(seed: int) -> tuple[list[dict[str, Any]], str, str, dict[str, Any]]:
    """Jobs and windows at round numbers, so that jobs end exactly where windows begin, and windows where others end."""
    draw = random.Random(seed)
    nodes = draw.randint(1, 3)
    jobs, arrival = [], 0.0
    for number in range(draw.randint(1, 6)):
        arrival += draw.choice([0.0, 0.0, 10.0, 50.0])
        gpus, length = draw.choice([1, 1, 2]), float(draw.choice([10, 50, 100, 100, 200]))
        jobs.append(job_row(f"j{number}", gpus, length, at=arrival, min_gpus=gpus, max_gpus=gpus))
    windows, start = [], float(draw.choice([0, 50, 100]))
    for number in range(draw.randint(1, 3)):
        length = draw.choice([50, 100])
        windows.append(f"on=node{draw.randrange(nodes)},from={start:g},for={length},name=w{number}")
        start += length + draw.choice([0, 0, 50])  # mostly the next one begins where this one ends
    options = {
        "reserve": ";".join(windows),
        "round": draw.choice([None, None, 60.0, 100.0]),
        "costs": draw.choice(["", "", "start=10,resume=40", "start=40,resume=10"]),
        "regime": draw.choice(["default", "default", "default", "tiresias"]),
        "estimates": draw.choice(["oracle", "oracle", "noisy:1.0"]),
    }
    return jobs, f"{nodes}x2", draw.choice(["fifo", "srtf", "las", "fair-share", "afs"]), options


def test_windows_at_round_numbers() -> None:
    for seed in range(40):
        jobs, cluster, policy, options = world_with_windows(seed)
        virtual, acknowledged = both(jobs, cluster, policy, **options)
        assert charged(acknowledged) == charged(virtual), f"seed {seed}"
        assert told(acknowledged) == told(virtual), f"seed {seed}"
        assert not virtual.incidents, f"seed {seed}: {virtual.incidents}"
        assert set(virtual.jobs["state"]) == {"completed"}, f"seed {seed}"


@pytest.mark.parametrize("policy", ["las", "tiresias"])
def test_a_stop_keeps_what_was_attained(policy: str) -> None:
    """Four jobs on two devices take turns; a stop that erased service would let the first two run through."""
    jobs = [job_row(f"j{k}", 1, 400.0 - 30.0 * k, at=10.0 * k) for k in range(4)]
    settings = {"limits": (100.0,)} if policy == "tiresias" else {}
    virtual, acknowledged = both(jobs, "1x2", policy, settings=settings)

    assert told(acknowledged) == told(virtual)
    assert acknowledged.summary["decisions"] <= virtual.summary["decisions"]
    if policy == "las":
        assert acknowledged.jobs["finish"].to_list() == [720.0, 710.0, 680.0, 640.0]
