"""Futures on records are those of the engine, job by job and to the last digit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

from gantline.core.arrays import Floats
from gantline.core.inputs import Submit
from gantline.core.policy import OrderPolicy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.assembly.run_rules import RunRules
from gantline.simulator.roll_forward import RollForward
from gantline.simulator.rollout import Candidate, rollout
from gantline.simulator.simulate import simulate
from gantline.traces.files.policies import load_policy

ORDERS = {
    "fifo": {},
    "fifo skip": {"backfill": "skip"},
    "sjf": {},
    "srtf": {},
    "srsf": {},
    "smallest": {},
    "las": {},
    "las gpu": {"service": "gpu-time"},
}


def instant(seed: int, running: int = 8, waiting: int = 30, sizes: tuple[int, ...] = (1, 1, 2, 3, 4, 8), **more: Any) -> Snapshot:
    """Some run on eight nodes of four, others wait; times are whole seconds, so that sums are exact."""
    random = np.random.default_rng(seed)
    jobs: list[dict[str, Any]] = []
    free = 0
    for k in range(running):
        gpus = int(random.choice(sizes))
        if free + gpus > 32:
            break
        done = int(random.integers(0, 400))
        told = {"gpus": gpus, "done": done, "service": done, "gpu_time": done * gpus, "first_start": 100, "last_start": 100}
        jobs.append(
            {"id": f"r{k}", "arrival": k, "estimate": done + int(random.integers(1, 3000)), "devices": [*range(free, free + gpus)], **told}
        )
        free += gpus
    jobs += [
        {"id": f"w{k}", "arrival": 100 + k, "gpus": int(random.choice(sizes)), "estimate": int(random.integers(10, 3000))}
        for k in range(waiting)
    ]
    return decode_snapshot({"now": 600, "cluster": "8x4", "jobs": jobs, **more})


def whole_work(snapshot: Snapshot, seed: int, futures: int = 3) -> Floats:
    """Work in whole seconds, above and below the estimates."""
    random = np.random.default_rng(seed)
    return np.maximum(1.0, np.round(snapshot.jobs.estimate * random.uniform(0.3, 3.0, (futures, len(snapshot.jobs)))))


def check(snapshot: Snapshot, name: str, settings: dict[str, Any], work: Floats, **how: Any) -> None:
    policy = load_policy(name.split()[0], settings)
    quick = rollout(snapshot, policy, draws=work, **how)[0]
    assert quick.on_records, name
    engine = RollForward(snapshot, policy, RunRules.at(snapshot, how.get("placement")))
    inputs = [list(how["newcomers"](np.random.default_rng(0)))] * len(work) if "newcomers" in how else [[]] * len(work)
    for line, start, finish, events in zip(work, quick.start, quick.finish, inputs):
        plain = engine.roll(line, how.get("until", np.inf), events)
        assert finish.tolist() == plain.finish.tolist(), name
        assert start.tolist() == plain.start.tolist(), name


COSTS = {"costs": {"start": 10.0, "resume": 30.0, "move": 40.0, "doubling": 2.0}, "min_run": 200.0}


@pytest.mark.parametrize("more", [{}, {"round": 60.0}, COSTS, COSTS | {"round": 60.0}], ids=["events", "rounds", "costs", "both"])
@pytest.mark.parametrize("name", ORDERS)
def test_futures_on_records_are_those_of_the_engine(name: str, more: dict[str, Any]) -> None:
    for seed in range(4):
        snapshot = instant(seed, waiting=30 if seed else 4, **more)
        check(snapshot, name, ORDERS[name], whole_work(snapshot, seed))


@pytest.mark.parametrize("more", [{}, COSTS], ids=["free", "costs"])
@pytest.mark.parametrize("name", ["fifo", "srtf", "srsf"])
def test_gangs_that_are_placed_together_run_on_records_too(name: str, more: dict[str, Any]) -> None:
    snapshot = instant(6, **more)
    check(snapshot, name, {}, whole_work(snapshot, 6), placement="consolidated")


@pytest.mark.parametrize("more", [{}, {"round": 60.0}], ids=["events", "rounds"])
def test_levels_are_reached_on_records_too(more: dict[str, Any]) -> None:
    snapshot = instant(9, **more)
    check(snapshot, "tiresias", {}, whole_work(snapshot, 9))


@pytest.mark.parametrize("name", ["srtf", "las", "fifo"])
def test_a_horizon_cuts_both_alike(name: str) -> None:
    for more in ({}, {"round": 60.0}):
        snapshot = instant(7, **more)
        check(snapshot, name, {}, whole_work(snapshot, 7), until=2000.0)


@pytest.mark.parametrize("name", ["srtf", "las", "fifo"])
def test_newcomers_enter_both_alike(name: str) -> None:
    def newcomers(random: np.random.Generator) -> list[Submit]:
        return [Submit(700.0 + 37 * k, {"id": f"n{k}", "gpus": 1 + k % 4, "estimate": 50.0 * (1 + k)}, 60.0 * (1 + k)) for k in range(12)]

    for more in ({}, {"round": 60.0}):
        snapshot = instant(5, **more)
        check(snapshot, name, {}, whole_work(snapshot, 5, 2), newcomers=newcomers)


@dataclass(frozen=True)
class BySize(OrderPolicy):
    """A key in Python that can be read."""

    name: ClassVar[str] = "by-size"

    def key(self, snapshot: Snapshot) -> Floats:
        return snapshot.jobs.remaining * 2.0 + 100.0 * snapshot.jobs.gpus


def test_a_key_that_can_be_read_runs_on_records_too() -> None:
    snapshot = instant(4, round=60.0)
    work = whole_work(snapshot, 4)
    quick = rollout(snapshot, BySize(), draws=work)[0]
    assert quick.on_records
    plain = RollForward(snapshot, BySize(), RunRules.at(snapshot))
    assert [plain.roll(line).finish.tolist() for line in work] == quick.finish.tolist()


@pytest.mark.parametrize(
    ("name", "more", "why"),
    [
        ("srtf", {"regime": "blox", "round": 300.0}, "evictions that turn out useless are kept"),
        ("gavel.max_min_fairness", {}, "it remembers"),
        ("afs", {}, "it is no order"),
    ],
)
def test_what_records_cannot_represent_is_left_to_the_engine(name: str, more: dict[str, Any], why: str) -> None:
    assert not rollout(instant(3, 3, 6, **more), name)[0].on_records, why


@pytest.mark.parametrize("limit", ["load-limit:1.0", "load-limit:1.4"])
@pytest.mark.parametrize("policy", ["fifo", "las", "srtf"])
def test_an_admission_limit_lets_in_whom_the_simulator_lets_in(policy: str, limit: str) -> None:
    random = np.random.default_rng(1)
    rows = [
        {
            "job": f"j{k}",
            "arrival": 0.0 if k < 20 else 60.0 * k,
            "gpus": int(random.choice([1, 2, 4])),
            "duration": float(random.integers(50, 4000)),
        }
        for k in range(40)
    ]
    run = simulate(rows, "2x4", policy, round=60.0, admission=limit)
    finish = {row["job"]: row["finish"] for row in run.jobs.to_dicts()}
    here = [{"id": row["job"], "arrival": 0, "gpus": row["gpus"], "estimate": row["duration"]} for row in rows[:20]]
    snapshot = decode_snapshot({"now": 0, "round": 60.0, "cluster": "2x4", "jobs": here})
    later = [
        Submit(row["arrival"], {"id": row["job"], "gpus": row["gpus"], "estimate": row["duration"]}, row["duration"]) for row in rows[20:]
    ]
    candidate = Candidate(load_policy(policy), admission=limit)
    rolled = rollout(snapshot, [candidate], newcomers=lambda _: later, held=range(20))[0]
    assert rolled.finish[0].tolist() == [finish[row["job"]] for row in rows[:20]]


def test_the_snapshot_is_left_alone_and_policies_share_their_draws() -> None:
    snapshot = instant(1)
    both = rollout(snapshot, ["srtf", "srtf", "sjf"], draws=5, seed=3)
    assert (both[0].finish == both[1].finish).all()
    assert (both["sjf"].finish != both[0].finish).any()
    again = rollout(replace(snapshot), "srtf", draws=5, seed=3)
    assert (again[0].finish == both[0].finish).all()


def test_policies_in_one_call_are_rolled_forward_as_alone() -> None:
    snapshot = instant(8)
    names = [*dict.fromkeys(name.split()[0] for name in ORDERS)]
    together = rollout(snapshot, names, draws=2)
    for name in names:
        assert (together[name].finish == rollout(snapshot, name, draws=2)[0].finish).all(), name


def test_a_limit_holds_jobs_back_and_without_one_they_are_let_in_whichever_loop_rolls() -> None:
    snapshot = instant(8, 3, 6)
    limited = Candidate(load_policy("afs"), "afs behind a limit", admission="load-limit:0.6")
    free, behind = rollout(snapshot, [Candidate(load_policy("afs")), limited], held=[7, 8])
    assert (free.finish == rollout(snapshot, "afs")[0].finish).all()
    assert (behind.start[:, :7] == free.start[:, :7]).all()
    assert (behind.start[:, 7:] > free.start[:, 7:]).all()


def test_futures_in_which_gangs_stop_again_and_again_are_those_of_the_engine() -> None:
    """Many estimates prove too low, and gangs stop for others more than once."""
    snapshot = instant(5, 8, 120, sizes=(1, 1, 2, 4, 8))
    work = whole_work(snapshot, 5, 4)
    check(snapshot, "srtf", {}, work)
    assert RollForward(snapshot, load_policy("srtf"), RunRules.at(snapshot)).roll(work[0]).decisions > 200
