"""GenModel and GenTree: closed forms against schedules of messages, the best plans, planted constants, trees, and speeds of gangs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Cli, cli  # noqa: F401

from gantline import simulate
from gantline.core.errors import GantlineError, UsageError
from gantline.models.links.allreduce import (
    PROTOTYPE,
    AllReducePlan,
    CostConstants,
    Switch,
    TimedAllReduce,
    best_plan,
    cost_of,
    fit_costs,
    flat_cost,
    plan_tree,
    plans,
    tree_of,
)
from gantline.traces.files.profiles import read_timed

RING, DIRECT = AllReducePlan("ring"), AllReducePlan("direct")


@pytest.mark.parametrize(
    ("plan", "servers", "rounds", "data", "additions", "accesses", "fan_in"),
    [
        (AllReducePlan("one-server"), 6, 2, 10, 5, 7, 6),
        (RING, 6, 10, 10 / 6, 5 / 6, 15 / 6, 2),
        (DIRECT, 6, 2, 10 / 6, 5 / 6, 7 / 6, 6),
        (AllReducePlan("levels", (6, 2)), 12, 4, 22 / 12, 11 / 12, 17 / 12, 6),
        (AllReducePlan("levels", (2, 3, 2)), 12, 6, 22 / 12, 11 / 12, 29 / 12, 3),
        (AllReducePlan("halving-doubling"), 8, 6, 14 / 8, 7 / 8, 21 / 8, 2),
    ],
    ids=str,
)
def test_a_plan_costs_what_its_messages_count_up_to(
    plan: AllReducePlan, servers: int, rounds: int, data: float, additions: float, accesses: float, fan_in: int
) -> None:
    """Of data of one unit on each server, cut into a piece for each, followed from server to server; of the busiest one in each round."""
    levels = plan.levels(servers, 1.0)
    total = [sum(getattr(level, name) for level in levels) for name in ("rounds", "data", "additions", "accesses")]
    assert total == pytest.approx([rounds, data, additions, accesses])
    assert max(level.fan_in for level in levels) == fan_in


@pytest.mark.parametrize("size", [100.0, 1000.0])
def test_the_best_plan_leaves_one_level_where_the_threshold_is_passed(size: float) -> None:
    found = {servers: str(best_plan(servers, size, PROTOTYPE)[0]) for servers in (8, 12, 15, 24, 64)}
    assert found == {8: "direct", 12: "6x2", 15: "5x3", 24: "8x3", 64: "8x8"}


def test_at_ten_units_twelve_servers_stay_with_one_level() -> None:
    assert str(best_plan(12, 10.0, PROTOTYPE)[0]) == "direct"


def test_no_plan_is_cheaper_than_the_best() -> None:
    plan, cost = best_plan(24, 50.0, PROTOTYPE)
    costs = {str(one): cost_of(one, 24, 50.0, PROTOTYPE) for one in plans(24)}
    assert cost == min(costs.values()) == costs[str(plan)]
    assert len(costs) == 1 + 19 + 1  # direct, products of factors in every order, ring


def planted(constants: CostConstants, noise: float = 0.0) -> list[TimedAllReduce]:
    rng = np.random.default_rng(5)
    asked = [(DIRECT, servers, 100.0) for servers in range(2, 21)] + [(RING, 8, size) for size in (1.0, 10.0, 100.0, 1000.0)]
    return [
        TimedAllReduce(plan, n, size, cost_of(plan, n, size, constants) * (1 + noise * rng.standard_normal())) for plan, n, size in asked
    ]


@pytest.mark.parametrize("constants", [PROTOTYPE, CostConstants(0.05, 0.001, 0.0002, 0.003, 0.0007, 5)])
def test_the_fit_recovers_planted_constants(constants: CostConstants) -> None:
    found = fit_costs(planted(constants)).constants
    assert found.threshold == constants.threshold
    assert 2 * found.beta + found.gamma == pytest.approx(2 * constants.beta + constants.gamma, rel=0.01)
    for name in ("alpha", "delta", "epsilon"):
        assert getattr(found, name) == pytest.approx(getattr(constants, name), rel=0.01)


def test_five_terms_predict_noisy_measurements_better_than_three() -> None:
    timed = planted(PROTOTYPE, noise=0.01)
    five = fit_costs(timed).error
    three = np.array([[sum(level.rounds for level in one.plan.levels(one.servers, one.size)),
                       sum(level.additions for level in one.plan.levels(one.servers, one.size))] for one in timed])  # fmt: skip
    seconds = np.array([one.seconds for one in timed])
    found = np.linalg.lstsq(three / seconds[:, None], np.ones(len(seconds)), rcond=None)[0]
    assert five < 0.5 * float(np.abs(three @ found / seconds - 1.0).mean())


def test_a_tree_costs_the_sum_of_its_levels_and_beats_flat_plans_over_slow_uplinks() -> None:
    tree = tree_of((4, 16), (4.0, 1.0))
    found = plan_tree(tree, 100.0, PROTOTYPE)
    within, across = best_plan(16, 100.0, PROTOTYPE)[1], best_plan(4, 100.0 / 16, PROTOTYPE, 4.0)[1]
    assert found.seconds == pytest.approx(within + across)
    assert len(found.switches) == 5
    assert found.seconds < flat_cost(RING, tree, 100.0, PROTOTYPE) < flat_cost(DIRECT, tree, 100.0, PROTOTYPE)


def test_siblings_of_different_size_meet_by_the_largest_piece() -> None:
    uneven = plan_tree(Switch((Switch(2), Switch(8))), 100.0, PROTOTYPE)
    assert uneven.switches[-1].seconds == best_plan(2, 50.0, PROTOTYPE)[1]
    levels = [best_plan(8, 100.0, PROTOTYPE)[1], uneven.switches[-1].seconds]
    assert uneven.seconds == pytest.approx(sum(levels))


def test_a_gang_that_spans_nodes_over_slow_links_takes_longer() -> None:
    job = {"job": "a", "arrival": 0.0, "gpus": 4, "duration": 100.0, "allreduce_size": 10.0}
    near, far = (simulate([job], cluster, "fifo", performance="genmodel").jobs["finish"][0] for cluster in ("1x4", "2x2,links:100/10/5"))
    assert near == pytest.approx(100.0 * (1.0 + best_plan(4, 10.0, PROTOTYPE)[1]))
    crossed = plan_tree(Switch((Switch(2), Switch(2)), 10.0), 10.0, PROTOTYPE).seconds
    assert far == pytest.approx(100.0 * (1.0 + crossed))
    assert simulate([job | {"allreduce_size": None}], "1x4", "fifo", performance="genmodel").jobs["finish"][0] == 100.0


def test_the_command_lists_plans_trees_and_constants(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    plans_told = cli("profile", "allreduce", "--servers", 15, "--size", 100, "-o", "json").json
    assert plans_told[0]["plan"] == "5x3"
    tree = cli("profile", "allreduce", "--tree", "4x16", "--slowdowns", "4,1", "-o", "json").json
    assert [row["switch"] for row in tree[-3:]] == ["GenTree", "flat", "flat"]
    timed = tmp_path / "timed.csv"
    rows = "\n".join(f"{one.plan},{one.servers},{one.size},{one.seconds}" for one in planted(PROTOTYPE))
    timed.write_text(f"plan,servers,size,seconds\n{rows}\n")
    told = cli("profile", "allreduce", "--fit", timed, "-o", "json").json
    assert (told["threshold"], round(told["2_beta_and_gamma"], 5)) == (9, 0.0068)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "one of --servers, --tree and --fit"),
        (("--servers", 4, "--tree", "2x2"), "one of --servers, --tree and --fit"),
        (("--servers", 0), "0 servers"),
        (("--servers", 4, "--size", 0), "0 units"),
        (("--servers", 4, "--slowdowns", "2"), "add --tree"),
        (("--tree", "4x", "--size", 1), "--tree 4x16"),
        (("--tree", "4x0"), "a level of 0"),
        (("--tree", "4x4", "--slowdowns", "2"), "2 levels and 1 slowdowns"),
        (("--servers", 4, "--constants", "1,2"), "is not six numbers"),
        (("--servers", 4, "--constants", "1,2,3,4,-5,6"), "epsilon is -5"),
    ],
)
def test_mistakes_are_told(cli: Cli, words: tuple[object, ...], told: str) -> None:  # noqa: F811
    done = cli("profile", "allreduce", *words)
    assert done.code == 2
    assert told in done.err


def test_measurements_that_cannot_be_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "timed.csv"
    for row, told in (
        ("star,4,1,1", "no plan is called 'star'"),
        ("6x2,8,1,1", "levels of 6x2 for 8 servers"),
        ("ring,1,1,1", "on 1 servers"),
    ):
        path.write_text(f"plan,servers,size,seconds\n{row}\n")
        with pytest.raises(GantlineError, match=told):
            read_timed(path)
    with pytest.raises(UsageError, match="2 measurements"):
        fit_costs(planted(PROTOTYPE)[:2])
