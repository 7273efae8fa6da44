"""Links that gangs share: flows against a plain simulation, the numbers of the paper's circles, and both as models under a policy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import spearmanr
from tests.probes.scenario import each, fact, job

from gantline.core.arrays import Floats
from gantline.core.cluster import Cluster, Link, Node
from gantline.core.plan import Mode
from gantline.core.policy import Policy
from gantline.lab.report.metrics import measure
from gantline.lab.report.run_warnings import links_apart
from gantline.models.links.link_flows import Flow, iteration_times
from gantline.models.links.shared_links import ANGLES, Circle, best_shifts, common_period, score_of, stretched
from gantline.simulator.simulate import simulate


def worst_score(one: Circle, other: Circle, capacity: float) -> float:
    """The least score of two jobs over the same angles."""
    return min(score_of([one, other._replace(shift=angle / ANGLES * other.iteration)], capacity) for angle in range(ANGLES))


def plain_times(flows: Sequence[Flow], iterations: int = 400, skip: int = 100) -> list[float]:
    """Two jobs on one link of 1 GB/s, step by step; the mean over whole iterations."""
    ends: list[list[float]] = [[], []]
    left, sends, now = [flow.compute + flow.shift for flow in flows], [False, False], 0.0
    while min(map(len, ends)) < iterations:
        rate = [0.0, 0.0]
        low, high = sorted((0, 1), key=lambda j: flows[j].bandwidth)
        rate[low] = min(flows[low].bandwidth, 0.5 if sends[high] else 1.0) if sends[low] else 0.0
        rate[high] = min(flows[high].bandwidth, 1.0 - rate[low]) if sends[high] else 0.0
        step = min(left[j] / rate[j] if sends[j] else left[j] for j in (0, 1))
        now += step
        for j, flow in enumerate(flows):
            left[j] -= step * (rate[j] if sends[j] else 1.0)
            if left[j] <= 1e-12:
                if sends[j]:
                    ends[j].append(now)
                left[j] = flow.compute if sends[j] else flow.network * flow.bandwidth
                sends[j] = not sends[j]
    return [(end[-1] - end[skip]) / (len(end) - 1 - skip) for end in ends]


@pytest.mark.parametrize(
    ("compute", "shift", "expected"), [(0.1, 0.0, 0.3), (0.1, 0.1, 0.2), (0.06, 0.0, 0.26), (0.06, 0.08, 0.2), (0.06, 0.1, 0.2)]
)
def test_two_jobs_on_one_link_take_what_fair_sharing_gives_them(compute: float, shift: float, expected: float) -> None:
    flows = [Flow(compute, 0.1, 1.0, (0,)), Flow(compute, 0.1, 1.0, (0,), shift)]

    assert iteration_times(flows, [1.0]) == pytest.approx([expected] * 2)
    assert iteration_times(flows[:1], [1.0]) == pytest.approx([compute + 0.1])


def random_pair(rng: np.random.Generator, related: float = 0.0, rate: float | None = None) -> list[Flow]:
    """Of one draw, this part of the pairs has periods that are equal or one twice the other; all else stays as drawn."""
    iteration = np.round(rng.uniform(0.05, 0.3, 2) / 0.005) * 0.005
    part, rates, shift, relates, equal = (
        rng.uniform(0.1, 0.8, 2),
        rng.uniform(0.4, 1.0, 2),
        rng.uniform(),
        rng.uniform(),
        rng.uniform() < 0.5,
    )
    if relates < related:
        other = 1.0 if equal else 2.0 if iteration[0] <= 0.15 else 0.5
        iteration[1] = other * iteration[0]
    network, shifts = iteration * part, (0.0, shift * iteration[1])
    return [Flow(iteration[j] - network[j], network[j], rate or rates[j], (0,), shifts[j]) for j in (0, 1)]


def slowdowns(seed: int, count: int, related: float = 0.0, rate: float | None = None) -> tuple[Floats, Floats]:
    """Of each job of so many random pairs: by the flows, and by the circles."""
    rng = np.random.default_rng(seed)
    flows, circles = [], []
    for _ in range(count):
        pair = random_pair(rng, related, rate)
        alone = np.array([flow.compute + flow.network for flow in pair])
        flows.append(iteration_times(pair, [1.0]) / alone)
        circles.append(stretched(circles_of(pair), 1.0) / alone)
    return np.concatenate(flows), np.concatenate(circles)


def circles_of(flows: Sequence[Flow]) -> list[Circle]:
    return [Circle(flow.compute + flow.network, flow.network, flow.bandwidth, flow.shift) for flow in flows]


def test_flows_equal_a_plain_simulation() -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        pair = random_pair(rng)
        alone = [flow.compute + flow.network for flow in pair]
        found = iteration_times(pair, [1.0])
        assert found == pytest.approx(plain_times(pair), rel=0.02)
        assert (found >= np.array(alone) * (1.0 - 1e-6)).all()


def test_a_flow_over_two_links_has_what_the_narrower_leaves_it() -> None:
    long = Flow(0.0, 1.0, 2.0, (0, 1))
    assert iteration_times([long], [2.0, 1.0]) == pytest.approx([2.0])
    always = Flow(0.0, 1.0, 1.0, (1,))
    assert iteration_times([Flow(0.0, 1.0, 1.0, (0, 1)), always], [1.0, 1.0]) == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize(
    ("one", "other", "worst", "best"),
    [
        (Circle(0.04, 0.01, 1.0), Circle(0.06, 0.01, 1.0), 1 - 0.01 / 0.12, 1.0),
        (Circle(0.1, 0.05, 1.0), Circle(0.1, 0.05, 1.0), 0.5, 1.0),
        (Circle(0.1, 0.06, 1.0), Circle(0.1, 0.06, 1.0), 0.4, 0.8),
        (Circle(0.1, 0.03, 1.0), Circle(0.07, 0.03, 1.0), 1 - 0.09 / 0.7, 1 - 0.09 / 0.7),
    ],
)
def test_scores_integrate_the_excess_exactly(one: Circle, other: Circle, worst: float, best: float) -> None:
    assert worst_score(one, other, 1.0) == pytest.approx(worst)
    assert best_shifts([one, other], 1.0).score == pytest.approx(best)


def test_many_jobs_may_score_below_zero_and_one_alone_fits() -> None:
    assert score_of([Circle(0.1, 0.09, 1.0)] * 4, 1.0) < 0.0
    assert score_of([Circle(0.1, 0.09, 1.0)], 1.0) == 1.0


def test_periods_without_a_common_multiple_in_the_limit_are_told_apart() -> None:
    period, common = common_period([0.04, 0.06])
    assert common
    assert period == pytest.approx(0.12)
    assert common_period([0.1, 0.1 * 2**0.5])[1] is False
    assert best_shifts([Circle(0.1, 0.05, 1.0), Circle(0.1 * 2**0.5, 0.05, 1.0)], 1.0).common is False


def test_the_circles_rank_random_pairs_as_flows_do() -> None:
    flows, circles = slowdowns(0, 150)
    assert spearmanr(flows, circles).statistic > 0.9
    assert np.mean(np.abs(flows - circles)) < 0.02


UPLINK = Cluster(tuple(Node(f"n{k}", gpus=2, rack=f"r{k}") for k in range(2)), (Link("rack:r0", "rack:r1", 1.0),))
SENDS = {"iteration_time": 0.2, "stage_network": 0.1, "link_bandwidth": 1.0}


def across(shift: float) -> Policy:
    """Each job has a GPU in each rack; they are shifted against each other."""
    terms = {"a": {"devices": (0, 2), "offset": 0.0}, "b": {"devices": (1, 3), "offset": shift}}
    return each(lambda snapshot, k: {"group": 0, "mode": Mode.INTERLEAVE, **terms[snapshot.jobs.ids[k]]})


@pytest.mark.parametrize("model", ["shared-links", "link-circles"])
def test_gangs_that_meet_on_a_link_are_slower_until_one_has_gone_unless_they_are_shifted(model: str) -> None:
    jobs = [job("a", 2, 100, **SENDS), job("b", 2, 60, **SENDS)]

    met, shifted = (simulate(jobs, UPLINK, across(shift), performance=model) for shift in (0.0, 0.1))

    assert [fact(met, name, "finish") for name in ("a", "b")] == [pytest.approx(130.0), pytest.approx(90.0)]
    assert [fact(shifted, name, "finish") for name in ("a", "b")] == [pytest.approx(100.0), pytest.approx(60.0)]


def test_a_run_says_how_much_its_links_were_used() -> None:
    run = simulate([job("a", 2, 100, **SENDS), job("b", 2, 60, **SENDS)], UPLINK, across(0.1), performance="shared-links")

    (link,) = run.summary["links"]
    assert (link["gangs"], link["overload_seconds"]) == (2, 0.0)
    assert link["mean_load"] == pytest.approx((60.0 * 1.0 + 40.0 * 0.5) / 100.0)
    assert run.summary["communication_seconds"] == pytest.approx(80.0)
    found = measure(run)
    assert [found[key] for key in ("communication", "link_overload", "cross_rack")] == pytest.approx([80.0, 0.0, 1.0])


def test_a_run_says_that_links_do_not_connect_its_nodes() -> None:
    halves = Cluster(tuple(Node(f"n{k}", gpus=2) for k in range(4)), (Link("n0", "n1", 1.0), Link("n2", "n3", 1.0)))
    run = simulate([job("a", 2, 10, **SENDS)], halves, "fifo", performance="shared-links")

    assert run.summary["nodes_apart"] == 2
    assert "in 2 groups only" in links_apart(run.summary)
