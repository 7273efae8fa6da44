"""What the kernels decide stays what it was: recorded runs, the loops against each other, and how much they look at."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.simulator.small_runs import draw, fingerprint, small_run

from gantline.engine.dense.low_ranks import PassCount
from gantline.engine.drivers import key_reading as read
from gantline.engine.drivers import record_loop as dense
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.drivers.six_steps import LoopCount
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.generators import generate
from gantline.traces.trace import Trace

#: One line per number: the fingerprint that the first kernel gave (it scanned everybody who ran or waited at every decision), but for five
#: runs with options of several sizes, recorded anew when smaller options became those of the shrink rule only.
RECORDED = (Path(__file__).parent / "recorded_runs.txt").read_text().split()


@pytest.mark.parametrize("block", [0, 2])
def test_recorded_runs_are_what_they_were(block: int) -> None:
    numbers = range(block * 100, block * 100 + 100)
    differ = [n for n in numbers if fingerprint(small_run(n, noise=False)) != RECORDED[n]]
    assert not differ


def test_records_and_tables_give_the_same_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the records can say, the tables say too, to the last bit of every column."""
    numbers = range(1000, 1030)
    on_records = [_told(small_run(n, hard=False)) for n in numbers]
    monkeypatch.setattr(read, "why_not_on_records", lambda state: "the test forbids it")
    assert [_told(small_run(n, hard=False)) for n in numbers] == on_records


def _told(run: Run) -> tuple[str, int]:
    """All of its results, and how many jobs spanned nodes."""
    return fingerprint(run), run.summary["cross_node_jobs"]


def test_keys_in_whole_rounds_rank_as_any_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds run in whole rounds are often equal; their row then is a part of what they stand by. Other keys are compared one by one."""
    trace = generate("philly", seed=5, jobs=1000, load=1.6, gpus=64)
    runs = [simulate(trace, "8x8", "las", round=60, placement=way) for way in ("first-free", "consolidated")]
    assert all(run.summary["preemptions"] > 100 for run in runs)
    monkeypatch.setattr(dense, "_whole", lambda state, key: 0.0)
    others = [simulate(trace, "8x8", "las", round=60, placement=way) for way in ("first-free", "consolidated")]
    assert [_told(run) for run in others] == [_told(run) for run in runs]


def _in_whole_seconds(number: int) -> tuple[Any, ...]:
    """A drawn run in which everything goes as planned, so that promises stand."""
    trace, spec, policy, more = draw(number, hard=False)
    frame = trace.frame.with_columns(pl.col("arrival", "duration").ceil())
    plain = {"placement": "first-free", "round": None, "costs": "", "estimates": "oracle", "until": math.inf}
    return number, Trace(frame, "drawn"), spec, policy, more | plain


@pytest.mark.parametrize("way", ["easy", "conservative"])
def test_backfilling_on_records_equals_the_policy(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """`policies.backfill`, asked at every decision, is the oracle."""
    policy = make_policy("fifo", {"backfill": way})
    drawn = [(number, *draw(number, hard=False)) for number in range(2000, 2004)]
    drawn += [_in_whole_seconds(number) for number in range(2016, 2020)]
    compiled = [simulate(trace, spec, policy, **more).summary["log_hash"] for _, trace, spec, _, more in drawn]
    monkeypatch.setattr(read, "at_asked_speed", lambda state: False)
    asked = [simulate(trace, spec, policy, **more).summary["log_hash"] for _, trace, spec, _, more in drawn]
    assert [drawn[k][0] for k in range(len(drawn)) if compiled[k] != asked[k]] == []


def test_costs_that_grow_with_the_gang_are_the_same_on_records(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [draw(number, hard=False) for number in range(3000, 3020)]
    on_records = [fingerprint(simulate(*setup, **more | {"costs": "measured"})) for *setup, more in drawn]
    monkeypatch.setattr(read, "why_not_on_records", lambda state: "the test forbids it")
    assert [fingerprint(simulate(*setup, **more | {"costs": "measured"})) for *setup, more in drawn] == on_records


def work_of(monkeypatch: pytest.MonkeyPatch, policy: str, jobs: int, gpus: int, **settings: Any) -> dict[str, float]:
    """Per decision: rows looked at, keys evaluated; per start: the same."""
    seen: list[Any] = []
    loop = dense.run_records

    def spy(on: Any, number: Any, clock: Any) -> int:
        seen.append((on.work.number, clock.number))
        return loop(on, number, clock)

    monkeypatch.setattr(dense, "run_records", spy)
    trace = generate("philly", seed=3, jobs=jobs, load=1.5, gpus=gpus)
    simulate(trace, f"{gpus // 8}x8", make_policy(policy, settings), round=60, placement=settings.pop("placement", "first-free"))
    number, counters = seen[-1]
    changed = counters[LoopCount.DECISIONS] + number[PassCount.STARTED] + number[PassCount.STOPPED]
    return {"rows": number[PassCount.LOOKED] / changed, "keys": number[PassCount.EVALUATED] / changed}


@pytest.mark.parametrize(
    ("policy", "settings", "rows", "keys"),
    [
        ("fifo", {"backfill": "skip"}, 2, 0.1),
        ("fifo", {"backfill": "easy"}, 60, 60),
        ("sjf", {}, 2, 0.1),
        ("srtf", {}, 8, 4),
        ("las", {}, 4, 4),
        ("tiresias", {"compat": "none"}, 8, 4),
    ],
)
def test_a_decision_costs_what_changes(
    monkeypatch: pytest.MonkeyPatch, policy: str, settings: dict[str, Any], rows: float, keys: float
) -> None:
    """Rows looked at and keys evaluated, per decision, start and stop, do not grow with those who run."""
    small = work_of(monkeypatch, policy, 2000, 64, **settings)
    large = work_of(monkeypatch, policy, 2000, 512, **settings)
    for found in (small, large):
        assert found["rows"] <= rows
        assert found["keys"] <= keys


def _in_queues(seed: int, policy: str) -> Any:
    """Three queues, of which one borrows without bound and one not at all; gangs that were started run for half a minute at least."""
    random = np.random.default_rng(seed)
    times = (np.sort(random.integers(0, 3000, 60)), random.integers(20, 900, 60))
    gpus, queue = random.choice([1, 1, 2, 4], 60), random.choice(["q0", "q1", "q2"], 60)
    frame = pl.DataFrame({"job": [f"j{k}" for k in range(60)], "arrival": times[0], "duration": times[1], "gpus": gpus, "queue": queue})
    run = simulate(Trace.from_frame(frame), "2x8", policy, queues="q0=6:inf,q1=6:4,q2=4:0", min_run=30.0, costs="resume=10")
    return fingerprint(run), run.summary["preemptions"], run.summary["loop"]


@pytest.mark.parametrize("policy", ["fifo", "srtf", "sjf"])
def test_quotas_bound_the_compiled_loop_as_they_bound_the_steps(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = [_in_queues(seed, policy) for seed in range(3)]
    assert {loop for *_, loop in compiled} == {"tables"}
    assert sum(stopped for _, stopped, _ in compiled) > 0
    monkeypatch.setattr(Simulation, "between_decisions", lambda self: "the test forbids it")
    assert [told[:2] for told in compiled] == [_in_queues(seed, policy)[:2] for seed in range(3)]
