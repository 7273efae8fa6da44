"""The compiled simulator against the plain one: the same intervals on the same devices, job by job."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.oracles.plain_simulator import LIMITS, ORDERS, Interval, Job, PlainSimulator
from tests.oracles.plain_walk import Way
from tests.simulator.workloads import Workload, workloads

from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job as JobColumn
from gantline.core.tables import Tables
from gantline.models.estimate_chain import Estimates
from gantline.policies.registry import make_policy
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate

POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("fifo", {}),
    "fifo skip": ("fifo", {"backfill": "skip"}),
    "sjf": ("sjf", {}),
    "srtf": ("srtf", {}),
    "srsf": ("srsf", {}),
    "smallest": ("smallest", {}),
    "las": ("las", {}),
    "las gpu-time": ("las", {"service": "gpu-time"}),
    "tiresias": ("tiresias", {"limits": LIMITS, "compat": "none"}),
}


@dataclass(frozen=True)
class Setup:
    """How a workload is run; the defaults are those of simulate()."""

    round: float = 0.0
    consolidated: bool = False
    start_cost: float = 0.0
    resume_cost: float = 0.0
    move_cost: float = 0.0
    min_run: float = 0.0
    load_limit: float = math.inf
    noise: float = 0.0
    seed: int = 0

    def compiled(self, workload: Workload, name: str, **more: Any) -> Run:
        policy, parameters = POLICIES[name]
        return simulate(
            workload.trace,
            workload.spec,
            more.pop("policy", make_policy(policy, parameters)),
            round=self.round,
            placement="consolidated" if self.consolidated else "first-free",
            costs=f"start={self.start_cost},resume={self.resume_cost},move={self.move_cost}",
            min_run=self.min_run,
            admission="accept-all" if math.isinf(self.load_limit) else f"load-limit:{self.load_limit}",
            estimates=f"noisy:{self.noise}" if self.noise else "oracle",
            seed=self.seed,
            **more,
        )

    def plain(self, workload: Workload, name: str, estimates: list[float]) -> PlainSimulator:
        jobs = [
            Job([Way(0, gpus, 1.0, 0.0)], row=row, arrival=arrival, work=work, estimate=estimates[row])
            for row, (arrival, gpus, work) in enumerate(workload.jobs)
        ]
        costs = (self.start_cost, self.resume_cost, self.move_cost)
        oracle = PlainSimulator(ORDERS[name], workload.nodes, jobs, self.round, self.load_limit, self.min_run, self.consolidated, *costs)
        oracle.run()
        return oracle


def setups(*rounds: float) -> st.SearchStrategy[Setup]:
    return st.builds(
        Setup,
        round=st.sampled_from(rounds),
        consolidated=st.booleans(),
        start_cost=st.sampled_from([0.0, 0.0, 30.0]),
        resume_cost=st.sampled_from([0.0, 0.0, 45.0]),
        move_cost=st.sampled_from([0.0, 0.0, 20.0]),
        min_run=st.sampled_from([0.0, 0.0, 0.0, 90.0]),
        load_limit=st.sampled_from([math.inf, math.inf, 1.0, 1.5]),
        noise=st.sampled_from([0.0, 0.0, 0.5]),
        seed=st.integers(0, 99),
    )


def first_estimates(workload: Workload, setup: Setup) -> list[float]:
    """What policies believe at first; a run's tables hold what they believe in the end, after doublings."""
    tables = Tables.empty(parse_cluster(workload.spec), len(workload.jobs))
    tables.F[JobColumn.WORK] = [work for _, _, work in workload.jobs]
    Estimates("noisy" if setup.noise else "oracle", setup.noise).fill(tables, setup.seed)
    return [float(value) for value in tables.F[JobColumn.ESTIMATE]]


def intervals(run: Run) -> list[Interval]:
    rows = {job: row for row, job in enumerate(run.tables.ids)}
    listed = [
        Interval(rows[job], start, end, tuple(devices))
        for job, start, end, devices in run.allocations.select("job", "start", "end", "devices").iter_rows()
    ]
    return sorted(listed, key=lambda interval: (interval.start, interval.row))


def asked(name: str) -> Any:
    """The same policy, asked for a plan at every decision."""
    policy, parameters = POLICIES[name]
    made = make_policy(policy, parameters)
    stepping = type("Stepping", (type(made),), {"decide": lambda self, snapshot: type(made).decide(self, snapshot)})
    return stepping(**parameters)


@pytest.mark.parametrize("name", POLICIES)
@given(workload=workloads(), setup=setups(0.0, 60.0, 0.0, 100.0))
def test_every_interval_equals_the_plain_simulators_and_the_stepping_loops(name: str, workload: Workload, setup: Setup) -> None:
    run = setup.compiled(workload, name)
    assert setup.compiled(workload, name, policy=asked(name)).summary["log_hash"] == run.summary["log_hash"]
    oracle = setup.plain(workload, name, first_estimates(workload, setup))
    found = intervals(run)
    assert [(i.row, i.devices) for i in found] == [(i.row, i.devices) for i in oracle.intervals]
    assert [i.start for i in found] == pytest.approx([i.start for i in oracle.intervals], abs=1e-6)
    assert [i.end for i in found] == pytest.approx([i.end for i in oracle.intervals], abs=1e-6)
    assert run.jobs["preemptions"].to_list() == [job.preemptions for job in oracle.jobs]
    assert run.jobs["finish"].to_list() == pytest.approx([job.finish for job in oracle.jobs], abs=1e-6)
    assert run.jobs["first_start"].to_list() == pytest.approx([job.first_start for job in oracle.jobs], abs=1e-6)


@pytest.mark.parametrize("name", POLICIES)
@given(workload=workloads(whole=False), setup=setups(60.0, 100.0))
@FEWER
def test_skipping_rounds_equals_stepping_through_them_in_both_loops(name: str, workload: Workload, setup: Setup) -> None:
    for more in ({}, {"policy": asked(name)}):
        skipping = setup.compiled(workload, name, **more)
        stepping = setup.compiled(workload, name, step_all=True, **more)
        assert skipping.summary["log_hash"] == stepping.summary["log_hash"], more
