"""One matrix for every policy that is registered: what a run, a question, a queue's limit and a resize ask of whichever policy decides.

At every change each policy goes through one of the checks and each check through many policies; `make test-long` takes every policy
through all of them. Rules that hold for policies of users too are in `test_registered_policies.py`, and each policy takes over a live
scheduler in `tests/runtime/test_every_policy.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.held import held, most_held
from tests.systems.gavel.tiny_world import table, trace

from gantline.conformance.scenarios import CARBON
from gantline.core.facts import Facts
from gantline.core.grid import PowerGrid
from gantline.core.inputs import Action, JobRequest, Submit
from gantline.core.signal import Signal
from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy, policy_names
from gantline.questions import explain
from gantline.questions.forecast import Setup
from gantline.simulator.simulate import simulate
from gantline.simulator.uncertainty import Uncertainty

POLICIES = [name for name in policy_names() if name != "recorded"]  # that one decides in an imitation only
BRIEF = {name: {"size": 6, "generations": 3} for name in ("pollux", "adaptdl")}  # a search as long as theirs is not the subject
EVEN = Signal((100.0,), step=200.0)  # a grid on which waiting saves nothing
JOBS = trace(("big", 400.0, 0.0), ("small", 300.0, 0.0), ("big", 200.0, 10.0), ("small", 90.0, 40.0), ("big", 60.0, 200.0))
PRESENT = {
    "now": 600,
    "cluster": "2x4",
    "jobs": [
        {"id": "big", "gpus": 4, "estimate": 4000, "service": 500, "devices": [0, 1, 2, 3]},
        {"id": "small", "gpus": 2, "estimate": 300, "arrival": 100, "devices": [4, 5]},
        {"id": "new", "gpus": 4, "estimate": 700, "arrival": 590},
    ],
}


def two_clocks(policy: str) -> None:
    """Through orders and reports without delay every number is what it is on virtual time."""
    options = {"throughputs": table(), "round": 30.0, "costs": "resume=3,move=2", "carbon": CARBON}
    virtual, acknowledged = (simulate(JOBS, "v100:1,k80:1", policy, executor=way, **options) for way in ("instant", "acknowledged"))
    assert acknowledged.jobs.write_csv() == virtual.jobs.write_csv()
    assert acknowledged.summary["log_hash"] == virtual.summary["log_hash"]


def explained(policy: str) -> None:
    """The answer is one of the acts, and its forecast does not lie before now."""
    present = replace(decode_snapshot(PRESENT), facts=Facts(grid=PowerGrid(carbon=CARBON)))
    sure = Setup(uncertainty=Uncertainty(sigma=0.0), samples=1)
    found = explain(present, make_policy(policy, BRIEF.get(policy, {})), "new", sure)
    assert found.act in ("starts", "stays", "moves", "resizes", "is stopped", "waits")
    assert found.lines()
    assert found.expected is None or (not found.expected.start_p50 < 600 and not math.isnan(found.expected.finish_p50))


def within_quotas(policy: str) -> None:
    """No queue holds more than it may have, and every job starts."""
    typed = policy.startswith("gavel") or policy in ("sia", "heet", "allox", "shockwave")
    bounds = {} if typed else {"min_gpus": 1, "max_gpus": 2}
    jobs = [{**row, "queue": ("a", "b/x", "b/y")[k % 3], **bounds} for k, row in enumerate(JOBS.frame.to_dicts())]
    more = {"throughputs": table()} if typed else {}
    run = simulate(jobs, "v100:2,k80:2" if typed else "1x4", policy, round=30.0, queues="a=1:0,b=1:1,b/x=1:0", carbon=CARBON, **more)
    limits = {"a": 1, "b": 2, "b/x": 1}
    most = most_held(run, limits)
    assert all(most[queue] <= limit for queue, limit in limits.items())
    assert not run.jobs["first_start"].is_nan().any(), run.incidents[:1]


def resized(policy: str) -> None:
    """A job that asks for another size while it runs holds that size, or waits for it."""
    if policy.startswith("gavel"):
        request = JobRequest(100.0, Action.RESIZE, "0", 2)
        run = simulate(trace(("big", 40000.0, 0.0)), "v100:2,k80:2", policy, throughputs=table(), inputs=[request], until=900, round=60.0)
        assert held(run, "0", 600.0) in (0, 2)
        return
    first = {"job": "a", "arrival": 0.0, "gpus": 3, "min_gpus": 3, "max_gpus": 3, "duration": 1000.0}
    request = JobRequest(100.0, Action.RESIZE, "a", 2)
    run = simulate([first], "1x4", policy, inputs=[request], until=450, round=60.0, carbon=EVEN)
    assert held(run, "a", 60.0) == 3
    assert held(run, "a", 440.0) == 2


def placed(policy: str) -> None:
    """A policy that names devices gives the same whatever the placement, and the run says that the rule decides nothing; no other does."""
    plain, ruled = (
        simulate(JOBS, "v100:2,k80:2", make_policy(policy), placement=rule, throughputs=table(), round=30.0, carbon=CARBON)
        for rule in (None, "consolidated:preferred")
    )
    said = any("decides nothing" in notice for notice in ruled.notices)
    assert said == make_policy(policy).names_devices
    assert not any("decides nothing" in notice for notice in plain.notices)
    assert not said or ruled.summary["log_hash"] == plain.summary["log_hash"]


def on_one_node(policy: str) -> None:
    """A job that must be on one node never spans two, whatever sizes the policy gives it, and is served."""
    if "pairs" in make_policy(policy).needs:
        return  # speeds of pairs come from a table, which lists no jobs that are submitted later
    first = {"job": "a", "arrival": 0.0, "gpus": 2, "duration": 900.0}
    asked = {"gpus": 2, "min_gpus": 1, "max_gpus": 3, "consolidate": 1}
    jobs = [Submit(float(k), {"id": f"s{k}", **asked, "estimate": 600.0 + 40.0 * k}, 600.0 + 40.0 * k) for k in range(1, 6)]
    run = simulate([first], "3x3", policy, settings=BRIEF.get(policy, {}), inputs=jobs, round=60.0, until=20_000, carbon=CARBON)
    mine = run.allocations.filter(run.allocations["job"].str.starts_with("s"))
    assert set(mine["job"]) == {f"s{k}" for k in range(1, 6)}
    assert mine["nodes"].list.len().max() == 1


@pytest.mark.each_value
@pytest.mark.parametrize("check", [two_clocks, explained, within_quotas, resized, placed, on_one_node])
@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy(policy: str, check: Callable[[str], None]) -> None:
    check(policy)
