"""Gavel's policies on the engine: every name, its parameters, what it is told and what it makes of that."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tests.systems.gavel.tiny_world import SPEEDS, table, trace

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.policy import parameters
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.policies.registry import find_policy, make_policy, policy_names
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

NAMES = [name for name in policy_names() if name.startswith("gavel.")]
CLUSTER = "v100:1,p100:1,k80:1"


def run(policy: str, jobs: Any = None, cluster: str = CLUSTER, speeds: ThroughputTable | None = None, **more: Any) -> Run:
    jobs = trace(("big", 4000.0, 0.0), ("small", 6000.0, 0.0), ("flat", 900.0, 0.0), ("big", 8000.0, 100.0)) if jobs is None else jobs
    return simulate(jobs, cluster, f"gavel.{policy}", throughputs=speeds or table(), **{"round": 60.0, **more})


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_finishes_all_jobs_on_events(name: str) -> None:
    jobs = trace(("big", 1000.0, 0.0), ("small", 1500.0, 0.0), ("flat", 300.0, 0.0), ("big", 2000.0, 100.0))
    assert find_policy(name).name == name
    assert all(item.help for item in parameters(find_policy(name)))
    done = run(name.removeprefix("gavel."), jobs, round=None, settings={"turn": 60.0})
    assert done.summary["completed"] == 4, name
    assert done.incidents == ()
    assert not np.isnan(done.jobs["jct"].to_numpy()).any()


def test_a_packed_policy_without_speeds_of_pairs_is_refused() -> None:
    with pytest.raises(RefusedError, match="needs pairs"):
        simulate(trace(("big", 10.0, 0.0)), "2x1", "gavel.max_min_fairness_packed", round=60.0)


def test_an_aware_policy_beats_the_agnostic_one_on_mixed_devices() -> None:
    jobs = trace(*(("big" if k % 2 else "flat", 3600.0, 0.0) for k in range(8)))
    aware, agnostic = (run(f"max_min_fairness{form}", jobs, "v100:2,k80:2").summary["average_jct"] for form in ("_perf", ""))
    assert aware < agnostic


def test_packing_saves_time_where_pairs_lose_little_and_does_nothing_where_they_lose_much() -> None:
    jobs = trace(*(("small", 3000.0, 0.0) for _ in range(6)))
    alone = run("max_min_fairness_perf", jobs, "v100:2").summary["makespan"]
    assert run("max_min_fairness_packed", jobs, "v100:2", table(0.9)).summary["makespan"] < 0.75 * alone
    assert run("max_min_fairness_packed", jobs, "v100:2", table(0.4)).summary["makespan"] == pytest.approx(alone, rel=0.1)


def test_weights_count() -> None:
    jobs = trace(*(("flat", 3600.0, 0.0) for _ in range(4)), weight=[4.0, 1.0, 1.0, 1.0])
    jct = run("max_min_fairness_perf", jobs, "v100:1").jobs["jct"].to_list()
    assert jct[0] < 0.75 * min(jct[1:])


def test_an_entity_gets_by_its_weight_and_divides_by_its_rule() -> None:
    jobs = trace(*(("flat", 1200.0, 0.0) for _ in range(4)), user=["lab", "lab", "shop", "shop"])
    told = (
        run("max_min_fairness_water_filling_perf", jobs, "v100:1", settings={"entities": "lab=3:fifo,shop=1:fairness"})
        .jobs["jct"]
        .to_list()
    )
    assert told[0] < told[1]
    assert max(told[:2]) < min(told[2:])
    with pytest.raises(UsageError, match="'shop', which is no entity"):
        simulate(
            jobs, "v100:1", "gavel.max_min_fairness_water_filling_perf", settings={"entities": "lab=1"}, throughputs=table(), regime="gavel"
        )


def test_cheap_devices_are_used_when_money_counts() -> None:
    """On the V100 'big' is four times as fast as on the K80, but here ten times as expensive."""
    jobs, prices = trace(("big", 4000.0, 0.0)), "v100=10,k80=1"
    way = {"prices": prices, "settings": {"ideal": True}, "regime": "gavel", "round": None}
    frugal = run("max_sum_throughput_normalized_by_cost_perf", jobs, "v100:1,k80:1", **way)
    hasty = run("max_sum_throughput_perf", jobs, "v100:1,k80:1", **way)
    assert frugal.summary["average_jct"] == pytest.approx(4000.0, rel=1e-3)
    assert hasty.summary["average_jct"] == pytest.approx(1000.0, rel=1e-3)
    assert frugal.summary["cost"] == pytest.approx(0.4 * hasty.summary["cost"], rel=1e-3)


def test_deadlines_that_cannot_be_met_are_named() -> None:
    """Two jobs of 1,000 s for one device, both due in 1,200 s: one will be late, and that is said."""
    jobs = trace(("flat", 1000.0, 0.0), ("flat", 1000.0, 0.0), deadline=[1200.0, 1200.0])
    for way in ({"regime": "gavel"}, {}):
        late = run("max_sum_throughput_normalized_by_cost_perf_SLOs", jobs, "v100:1", **way)
        assert [notice.partition(": ")[2] for notice in late.notices] == ["deadlines that cannot be met are given up: 1"]
        assert (late.jobs["finish"] > late.jobs["deadline"]).sum() == 1
        assert late.incidents == ()
    alone = trace(("flat", 1000.0, 0.0), deadline=[1200.0])
    good = run("max_sum_throughput_normalized_by_cost_perf_SLOs", alone, "v100:1", regime="gavel")
    assert good.summary["slo_violations"] == 0
    assert good.notices == ()


def test_parts_solve_nearly_as_well() -> None:
    jobs = trace(*(("big" if k % 2 else "small", 3600.0, 0.0) for k in range(16)))
    whole, parts = (run("max_min_fairness_perf", jobs, "v100:4,k80:4", settings={"parts": n}).summary["average_jct"] for n in (1, 2))
    assert parts == pytest.approx(whole, rel=0.1)


def test_estimated_pairs_are_used_until_they_have_run() -> None:
    """With few references a policy believes other speeds, packs otherwise, and learns what it ran."""
    uneven = json.loads(json.dumps(_uneven()))
    jobs = trace(*((name, 3000.0, 0.0) for name in (*SPEEDS, *SPEEDS) if name != "fussy"))
    told = [
        run("max_min_fairness_packed", jobs, "v100:2", ThroughputTable.of(uneven), settings=settings).summary["average_jct"]
        for settings in ({}, {"profiling": 0.3, "references": 2})
    ]
    assert told[0] != told[1]
    assert told[1] == pytest.approx(told[0], rel=0.5)


@pytest.mark.parametrize("way", [{}, {"regime": "gavel", "round": None}])
def test_a_run_with_estimated_pairs_tells_their_error(way: dict[str, Any]) -> None:
    jobs = trace(("big", 3000.0, 0.0), ("small", 3000.0, 0.0))
    measured, estimated = (
        run("gandiva", jobs, "v100:1", ThroughputTable.of(_uneven()), settings=settings, **way).summary
        for settings in ({}, {"profiling": 0.2, "references": 1})
    )
    assert "estimation_error" not in measured
    assert 0 < estimated["estimation_error"] <= estimated["estimation_error_rms"] < 1
    assert {"pairs_taken_for_impossible", "pairs_taken_for_possible"} <= set(estimated)


def _uneven() -> dict[str, Any]:
    """Pairs that go well together only with their own kind."""
    names = [name for name in SPEEDS if name != "fussy"]
    rows: dict[str, Any] = {}
    for name in names:
        own = SPEEDS[name][0]
        rows[f"('{name}', 1)"] = {"null": own}
        for other in names:
            part = 0.95 if name == other else 0.35
            rows[f"('{name}', 1)"][f"('{other}', 1)"] = [own * part, SPEEDS[other][0] * part]
    return {"v100": rows}


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("isolated", {"turn": "0"}, "'turn' is 0"),
        ("max_min_fairness_perf", {"parts": "0"}, "'parts' is 0"),
        ("gandiva", {"profiling": "1.5"}, "'profiling' is 1.5"),
        ("allox", {"alpha": "0"}, "'alpha' is 0"),
        ("max_min_fairness_water_filling", {"entities": "a=-1"}, "'a=-1' is no entity"),
        ("max_sum_throughput_normalized_by_cost_perf", {"prices": "v100=free"}, "'free' is not a number"),
        ("max_sum_throughput_normalized_by_cost_perf", {"prices": "v100=0"}, "price 0 is not above 0"),
    ],
)
def test_a_parameter_that_means_nothing_is_refused(name: str, settings: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make_policy(f"gavel.{name}", settings)


def test_a_price_that_is_missing_is_asked_for_by_type() -> None:
    with pytest.raises(UsageError, match="no price for device type 'k80'"):
        run("max_sum_throughput_normalized_by_cost_perf", settings={"prices": "v100=1,p100=1"}, regime="gavel")


def test_a_pair_that_nobody_measured_is_named() -> None:
    body = {"v100": {"('big', 1)": {"null": 4.0, "('big', 1)": [3.0, 3.0]}, "('small', 1)": {"null": 3.0, "('small', 1)": [2.0, 2.0]}}}
    jobs = trace(("big", 100.0, 0.0), ("small", 100.0, 0.0))
    with pytest.raises(NotFoundError, match=r"no throughput of .*big.* next to .*small.* on 'v100'"):
        run("max_min_fairness_packed", jobs, "v100:1", ThroughputTable.of(body), regime="gavel")
