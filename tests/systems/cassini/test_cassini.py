"""CASSINI on top of a host policy: shifts, the affinity graph, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.probes.scenario import fact, job

from gantline.core.errors import UsageError
from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.links.link_flows import Flow
from gantline.models.links.shared_links import SharedLinks, best_shifts, circle_of, fluid_times
from gantline.policies.registry import find_policy
from gantline.simulator.simulate import simulate
from gantline.systems.cassini.generator import periodic
from gantline.systems.cassini.policies import Cassini, judge, pays

NARROW = "3x2,tree:1/1"  # two gangs of three meet on the link of the second node
SENDS = {"iteration_time": 0.2, "stage_network": 0.1, "link_bandwidth": 1.0}
PAIR = [job("a", 3, 100, **SENDS), job("b", 3, 60, **SENDS)]


def test_jobs_that_meet_on_a_link_are_shifted_and_run_as_if_alone() -> None:
    plain = simulate(PAIR, NARROW, "fifo", performance="shared-links", placement="consolidated:preferred")
    shifted = simulate(PAIR, NARROW, "cassini", performance="shared-links")

    assert fact(plain, "b", "finish") > 61.0
    assert [fact(shifted, name, "finish") for name in ("a", "b")] == [pytest.approx(100.0), pytest.approx(60.0)]


def test_without_shifts_only_the_placement_is_chosen() -> None:
    kept = simulate(PAIR, NARROW, Cassini(shifts=False), performance="shared-links")

    assert fact(kept, "b", "finish") > 61.0


def test_a_chain_of_jobs_has_on_every_link_the_shifts_that_fit_best_there() -> None:
    flows = (Flow(0.2, 0.1, 1.0, (0,)), Flow(0.2, 0.1, 1.0, (0, 1)), Flow(0.2, 0.1, 1.0, (1,)))  # a third of it: left and right differ
    link_group = judge(flows, (1.0, 1.0))

    assert list(link_group.scores) == pytest.approx([1.0, 1.0])
    assert not link_group.cyclic
    for one, other in ((0, 1), (1, 2)):
        best = best_shifts([circle_of(flows[one], 1.0), circle_of(flows[other], 1.0)], 1.0).shifts
        assert (link_group.shifts[other] - link_group.shifts[one]) % 0.3 == pytest.approx((best[1] - best[0]) % 0.3)


def test_three_jobs_that_meet_pairwise_on_three_links_are_a_cycle_and_two_on_the_same_links_are_none() -> None:
    ring = tuple(Flow(0.1, 0.1, 1.0, tuple(sorted((k, (k + 1) % 3)))) for k in range(3))
    twice = tuple(Flow(0.1, 0.1, 1.0, (0, 1)) for _ in range(2))

    assert judge(ring, (1.0,) * 3).cyclic
    assert not judge(twice, (1.0, 1.0)).cyclic
    assert not judge(ring[:1], (1.0, 1.0)).cyclic  # a job that meets no other


def test_of_equally_compact_placements_the_one_beside_jobs_that_fit_is_chosen_whatever_runs_alone_elsewhere() -> None:
    """Three gangs of three leave one server free in a rack each, and a pair needs two: not the one beside the gang that sends for long."""
    long, half = SENDS | {"stage_network": 0.15}, SENDS
    jobs = [job("long", 3, 5000, **long), *(job(f"half{k}", 3, 5000, **half) for k in range(2)), job("alone", 2, 5000, **half)]
    jobs.append(job("pair", 2, 1000, at=1.0, **half))
    chosen, plain = (simulate(jobs, "14x1@2/rack,tree:1/1", Cassini(candidates=each), performance="shared-links") for each in (20, 1))

    assert fact(chosen, "pair", "finish") == pytest.approx(1001.0)
    assert fact(plain, "pair", "finish") > 1050.0
    assert chosen.summary["links_cyclic"] == 0


def test_shifts_that_are_applied_never_lengthen_the_mean_iteration() -> None:
    rng = np.random.default_rng(3)
    applied = kept = 0
    for _ in range(15):
        flows = []
        for _ in range(int(rng.integers(2, 5))):
            iteration = float(rng.choice([0.1, 0.12, 0.2, 0.3]))
            network = iteration * float(rng.uniform(0.2, 0.7))
            flows.append(Flow(iteration - network, network, float(rng.uniform(0.5, 1.0)), (0,), float(rng.uniform(0.0, iteration))))
        link_group = judge(tuple(flows), (1.0,))
        shifted = tuple(flow._replace(shift=shift) for flow, shift in zip(flows, link_group.shifts))
        with_shifts, without = (np.mean(fluid_times(each, (1.0,))) for each in (shifted, tuple(flows)))
        assert pays(tuple(flows), (1.0,), link_group.shifts) == (with_shifts <= without * (1.0 + 1e-9))
        applied, kept = applied + (with_shifts <= without), kept + (with_shifts > without)
    assert applied > 0
    assert kept > 0  # the guard has something to do: circles are not flows


def test_jobs_whose_periods_have_no_common_multiple_are_counted() -> None:
    flows = (Flow(0.05, 0.05, 1.0, (0,)), Flow(0.05 * 2**0.5, 0.05 * 2**0.5, 1.0, (0,)))

    assert judge(flows, (1.0,)).uncommon == 1


def test_a_run_says_that_periods_have_no_common_multiple_even_where_no_shift_is_worth_it() -> None:
    odd = SENDS | {"iteration_time": 0.2 * 2**0.5, "stage_network": 0.1 * 2**0.5}
    run = simulate([PAIR[0], job("b", 3, 60, **odd)], NARROW, Cassini(gain=1.0), performance="shared-links")

    assert run.summary["links_shifted"] == 0
    assert run.summary["links_uncommon"] > 0
    assert any("no common multiple" in notice for notice in run.notices)


def test_a_host_has_parameters_of_its_own() -> None:
    jobs = [job("first", 2, 300), job("second", 2, 300, at=10.0)]
    turns = {lease: simulate(jobs, "1x2", Cassini(f"themis f=1 lease={lease}")).summary["decisions"] for lease in (30, 300)}

    assert turns[30] > turns[300]


def test_on_a_cluster_without_links_jobs_run_as_the_host_says() -> None:
    jobs = [job(f"j{k}", 1 + k % 3, 50 + k, at=5.0 * k) for k in range(12)]
    one, other = (simulate(jobs, "2x4", policy) for policy in ("srtf", Cassini(host="srtf")))

    assert one.jobs["finish"].to_list() == other.jobs["finish"].to_list()


def test_a_host_that_does_more_than_choose_jobs_is_refused() -> None:
    jobs = [job("a", 1, 10, gpu_demand=0.5), job("b", 1, 10, gpu_demand=0.5)]

    with pytest.raises(UsageError, match="its own host"):
        simulate(jobs, "1x1", Cassini(host="cassini"))
    assert "says more than which jobs run" in simulate(jobs, "1x1", Cassini(host="sharing")).incidents[0]


def test_leases_go_to_jobs_that_fit_together_when_the_host_is_themis() -> None:
    """By itself Themis puts the gang that sends for long beside another one on a rack's link, where no shift would help."""
    jobs = [job("long", 3, 5000, **SENDS | {"stage_network": 0.15}), *(job(f"half{k}", 3, 5000, **SENDS) for k in range(2))]
    on_top, alone = (simulate(jobs, "12x1@2/rack,tree:1/1", policy, performance="shared-links") for policy in (Cassini("themis"), "themis"))

    assert on_top.jobs["finish"].to_list() == [pytest.approx(5000.0)] * 3
    assert fact(alone, "long", "finish") > 6000.0
    assert on_top.summary["migrations"] == 0  # a lease that is over is given again where it was


@pytest.mark.parametrize("host", ["themis", "pollux"])
def test_what_a_host_offers_is_the_same_gangs_elsewhere_on_no_more_racks(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, offered = find_policy(host), 0
    offers = kind.alternatives

    def watched(self: Policy, snapshot: Snapshot, plan: Plan, count: int) -> Sequence[Plan]:
        nonlocal offered
        found = offers(self, snapshot, plan, count)
        offered += len(found)
        for each in found:
            own, other = ({grant.job: grant.devices for grant in one.assignments or ()} for one in (plan, each))
            assert own.keys() == other.keys()
            for gang, devices in other.items():
                assert len(devices) == len(own[gang])
                assert all(now <= before for now, before in zip(_spans(snapshot, devices), _spans(snapshot, own[gang])))
            assert len({device for held in other.values() for device in held}) == sum(map(len, other.values()))
        return found

    monkeypatch.setattr(kind, "alternatives", watched)
    run = simulate(periodic(2, {"jobs": 8, "most": 5}), "12x1@2/rack,tree:6.25/6.25", Cassini(host=host), performance="shared-links")

    assert run.summary["completed"] == 8
    assert not run.incidents
    assert offered > 0


def _spans(snapshot: Snapshot, devices: tuple[int, ...]) -> tuple[int, int]:
    """How many nodes and racks these are on."""
    nodes = {int(snapshot.cluster.device_node[device]) for device in devices}
    return len(nodes), len({int(snapshot.cluster.node_rack[node]) for node in nodes})


def test_gangs_of_a_host_that_names_devices_and_offers_no_others_are_shifted_where_they_are() -> None:
    host, shifted = (simulate(PAIR, NARROW, policy, performance="shared-links") for policy in ("lyra", Cassini("lyra")))

    assert fact(host, "b", "finish") > 61.0
    assert fact(shifted, "b", "finish") == pytest.approx(60.0)


def test_jobs_that_slip_from_their_offsets_are_aligned_anew() -> None:
    length = 1200.0
    jobs = [job("a", 3, length, **SENDS), job("b", 3, length, **SENDS)]
    watched, left = (simulate(jobs, NARROW, Cassini(tolerance=each), performance=SharedLinks(drift=2.0)) for each in (0.05, 9.0))

    assert fact(left, "a", "finish") > 1.05 * length
    assert length < fact(watched, "a", "finish") < 1.05 * length
    assert watched.summary["links_realigned"] > 2
    assert left.summary["links_realigned"] == 0


def test_a_drift_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="a drift of -1"):
        SharedLinks(drift=-1.0)
