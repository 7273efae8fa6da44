"""Every placement rule, ours and a user's, gives the same devices on every path: runs, blocks, decisions, futures, questions, live."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.jobs import by_job, job_row

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.errors import NotFoundError, RefusedError
from gantline.core.facts import DeviceSpeeds
from gantline.core.inputs import Submit
from gantline.core.plan import Plan
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.engine.advance import arrive
from gantline.lab.questions.explain import explain, with_job
from gantline.lab.questions.forecast import Setup as QuestionSetup
from gantline.lab.questions.forecast import forecast
from gantline.lab.questions.what_if import what_if
from gantline.live.scheduler.setup import Setup, make_loop
from gantline.policies.fifo import Fifo
from gantline.policies.order import ShortestRemainingTimeFirst
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest
from gantline.policies.placement.rules import own_rules
from gantline.simulator.in_blocks import simulate_in_blocks
from gantline.simulator.roll_forward import carry_out, copied
from gantline.simulator.rollout import rollout
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.policies import placement_of
from gantline.traces.trace import Trace

SIZES, MODELS = (1, 3, 2, 4, 6), ("vgg16", "resnet50")
JOBS: list[dict[str, Any]] = [job_row(f"j{k}", SIZES[k % 5], 150.0 + 31.0 * (k % 7), at=20.0 * k, model=MODELS[k % 2]) for k in range(11)]
CLUSTER = Cluster(tuple(Node(f"n{k}", "gpu", 4) for k in range(3)), (Link("n0:0", "n0:1", 50.0), Link("n1:2", "n1:3", 25.0)))
SPEEDS = DeviceSpeeds({"": np.array([1.0, 1.2, 0.9, 1.0] * 3)})
BY_SPEED = ("pm-first", "pal")  # rules that read the speeds of devices


class Last(DeviceRule):
    """The last free devices."""

    def choose(self, gang: GangRequest, free: FreeDevices) -> list[int]:
        return sorted(free.devices)[-gang.gpus :]


RULES = [*own_rules(), Last()]
each_rule = pytest.mark.parametrize("rule", RULES, ids=str)
Held = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Watched(ShortestRemainingTimeFirst):
    """The usual order, which writes down what every plan would do, and keeps the instants up to a crowded one."""

    would_hold: dict[float, Held] = field(default_factory=dict, compare=False)
    instants: list[Snapshot] = field(default_factory=list, compare=False)

    def decide(self, snapshot: Snapshot) -> Plan:
        plan = super().decide(snapshot)
        self.would_hold[snapshot.now] = {one.job: tuple(sorted(one.devices)) for one in carry_out(snapshot, plan) if one.devices}
        if snapshot.now >= JOBS[-1]["arrival"] and not any(is_crowded(one) for one in self.instants[-1:]):
            self.instants.append(copied(snapshot))
        return plan


def options_of(rule: Any) -> dict[str, Any]:
    by_speed = isinstance(rule, str) and rule.removesuffix("-sticky") in BY_SPEED
    return {"placement": rule, "device_speeds": SPEEDS if by_speed else ""}


def run_by(rule: Any, policy: Any = "srtf", **more: Any) -> Run:
    return simulate(JOBS, CLUSTER, policy, **options_of(rule), **more)


def held_at(run: Run, now: float) -> Held:
    rows = run.allocations.select("job", "start", "end", "devices").rows()
    return {job: tuple(sorted(int(one) for one in devices)) for job, start, end, devices in rows if start <= now < end}


@cache
def watched(rule: Any) -> tuple[Watched, Run]:
    """One run for all tests of a rule: they only look at it."""
    policy = Watched()
    return policy, run_by(rule, policy)


def is_crowded(instant: Snapshot) -> bool:
    """Whether some jobs hold devices and some wait."""
    return bool(instant.jobs.running.any() and not instant.jobs.running.all())


def crowded(policy: Watched) -> Snapshot:
    """The first crowded instant at which all jobs have come."""
    return next(one for one in policy.instants if is_crowded(one))


@each_rule
def test_every_decision_does_what_it_was_said_to_do(rule: Any) -> None:
    policy, run = watched(rule)
    assert len(policy.would_hold) > 15
    for now, would in policy.would_hold.items():
        assert held_at(run, now) == would


@each_rule
def test_futures_and_forecasts_are_what_then_happens(rule: Any) -> None:
    policy, run = watched(rule)
    instant = crowded(policy)
    finish = by_job(run, "finish")
    expected = [finish[name] for name in instant.jobs.ids]
    assert rollout(instant, ShortestRemainingTimeFirst())[0].finish[0].tolist() == pytest.approx(expected)
    told = forecast(instant, ShortestRemainingTimeFirst(), setup=QuestionSetup(samples=0))
    assert [one.finish_p50 for one in told] == pytest.approx(expected)


@each_rule
def test_questions_place_as_the_run_does(rule: Any) -> None:
    policy, run = watched(rule)
    instant = crowded(policy)
    waiting = [name for name, runs in zip(instant.jobs.ids, instant.jobs.running) if not runs]
    held = held_at(run, instant.now)
    for name in (waiting[0], waiting[-1]):
        assert (explain(instant, ShortestRemainingTimeFirst(), name, QuestionSetup(samples=1)).act == "starts") == (name in held)
    then = with_job(instant, ShortestRemainingTimeFirst(), {"id": "more", "gpus": 1, "estimate": 1.0})
    assert then.facts.placement == instant.facts.placement
    present, other = ShortestRemainingTimeFirst(), Fifo()
    said = [what_if(instant, present, other, setup=QuestionSetup(placement, samples=1)).as_json() for placement in (None, rule)]
    assert said[0] == said[1]


@pytest.mark.parametrize("rule", own_rules())
def test_a_document_names_the_rule_of_its_run(rule: str) -> None:
    policy, run = watched(rule)
    instant = crowded(policy)
    document = encode_snapshot(instant)
    assert document.get("placement", "first-free") == rule
    if not options_of(rule)["device_speeds"]:
        read = decode_snapshot(document, instant.performance)
        outcome = carry_out(read, ShortestRemainingTimeFirst().decide(read))
        assert {one.job: tuple(sorted(one.devices)) for one in outcome if one.devices} == held_at(run, instant.now)


def test_a_document_cannot_hold_a_rule_that_was_given_as_an_object() -> None:
    instant = decode_snapshot(encode_snapshot(crowded(watched(Last())[0])))
    with pytest.raises(NotFoundError, match="no placement 'Last'"):
        carry_out(instant, ShortestRemainingTimeFirst().decide(instant))


class Stopped:
    def now(self) -> float:
        return 0.0


@pytest.mark.parametrize("rule", [*(rule for rule in own_rules() if not options_of(rule)["device_speeds"]), "last.py:Last"])
def test_live_places_as_simulation_does(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first decision of a live loop over the same jobs. Its rules have names, because a service writes them down."""
    monkeypatch.chdir(tmp_path)
    lines = "    def choose(self, gang, free):\n        return sorted(free.devices)[-gang.gpus :]\n"
    (tmp_path / "last.py").write_text(f"from gantline import DeviceRule\n\n\nclass Last(DeviceRule):\n{lines}")
    few = [{**job, "arrival": 0.0} for job in JOBS[:6]]
    engine = make_loop(Setup("srtf", placement=rule), None, CLUSTER, None, Stopped()).engine
    state = engine.state
    for job in few:
        told = {"id": job["job"], "gpus": job["gpus"], "model": job["model"], "estimate": job["duration"]}
        engine.apply(Submit(0.0, told, job["duration"]))
    arrive(state.tables.F[:, : state.tables.count], state.tables.I, state.lists, 0.0, math.inf)
    state.rebuild()
    plan = engine.decide()
    assert plan is not None
    engine.commit(plan)
    held = {state.tables.ids[row]: tuple(sorted(engine.grants.devices(row))) for row in state.running_rows.tolist()}
    assert held == held_at(simulate(few, CLUSTER, "srtf", placement=rule), 0.0)


@each_rule
def test_blocks_give_the_same_or_say_that_they_cannot(rule: Any, tmp_path: Path) -> None:
    file = tmp_path / "jobs.parquet"
    Trace.from_records([{key: job[key] for key in ("job", "arrival", "duration", "gpus")} for job in JOBS]).frame.write_parquet(file)
    if placement_of(rule).on_records:
        whole = simulate(str(file), CLUSTER, "srtf", placement=rule).summary["log_hash"]
        assert simulate_in_blocks(file, CLUSTER, "srtf", placement=rule, block=7)["log_hash"] == whole
    else:
        with pytest.raises(RefusedError, match=r"--block: a run in blocks (is|does not support)"):
            simulate_in_blocks(file, CLUSTER, "srtf", **options_of(rule), block=7)
