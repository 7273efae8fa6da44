"""FGD's filling experiment: Go's generator by what Go prints, and the curves, typical pods and placements of the published runs."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl
import pytest
from tests.simulator.references import reference

from gantline.lab.experiment.cluster_filling import FilledCluster, fill, read_nodes, read_pods
from gantline.policies.placement.parts.fragments import accepted_models, typical_mix
from gantline.systems.fgd.scheme import SCHEME, GoRandom, go_constants

RULES = ("dotprod", "clustering", "packing", "bestfit", "fgd")
WORKLOADS = ("default", "cpu050", "cpu200", "cpu250", "gpushare40", "gpushare100", "multigpu20", "multigpu50")
SEEDS = range(42, 52)
VALUES = ("alloc", "frag", "frag_of_idle")


def filled(workload: str, rule: str, seed: int) -> FilledCluster:
    pods, nodes = reference(f"fgd/traces/pods_{workload}.csv.gz"), reference("fgd/traces/nodes.csv.gz")
    return fill(pods, nodes, rule, seed=seed, compat="fgd")


def published(workload: str, rule: str) -> pl.DataFrame:
    curves = pl.read_csv(reference("fgd/curves.csv.gz"))
    return curves.filter(pl.col("workload") == workload, pl.col("policy") == rule).sort("seed", "arrived")


def test_go_draws_what_go_prints() -> None:
    one = GoRandom(1)
    assert [one.draw() for _ in range(3)] == [5577006791947779410, 8674665223082153551, 6129484611666145821]
    tens = GoRandom(1)
    assert [tens.below(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]


def test_a_permutation_and_a_shuffle_hold_each_number_once() -> None:
    items = list(range(50))
    GoRandom(7).shuffle(items)
    assert sorted(items) == sorted(GoRandom(7).permutation(50)) == list(range(50))
    assert items != sorted(items)


def test_pods_are_drawn_until_the_part_of_one_gpu_would_be_too_much() -> None:
    # 2,000 of 2,400 are asked for: one more pair of whole GPUs is let in by its part of 400, and the next draw ends it
    order = SCHEME.order(np.array([2000]), np.array([400.0]), 2400.0, 3, seed=1)
    assert order.pods.tolist() == [0, 0]
    fewer = SCHEME.order(np.array([1000, 1000, 1000]), np.full(3, 1000.0), 1500.0, 3, seed=1)
    assert len(fewer.pods) == 1
    assert sorted(fewer.nodes.tolist()) == [0, 1, 2]


# --- published ---------------------------------------------------------------------------------------------------------


def test_the_constants_are_those_of_gos_table() -> None:
    table = pl.read_csv(reference("fgd/go_rng_607.csv"))["value"].to_numpy()
    assert (table.view(np.uint64) == go_constants()).all()


def test_typical_pods_are_those_of_the_default_workload() -> None:
    nodes = read_nodes(reference("fgd/traces/nodes.csv.gz"))
    pods = read_pods(reference("fgd/traces/pods_default.csv.gz"), nodes)
    found = typical_mix(pods.shape, accepted_models(sorted(set(nodes.model))))
    table = pl.read_csv(reference("fgd/default_typical.csv"))
    for ours, theirs in zip((found.cpu, found.part, found.gpus, found.share), ("cpu_milli", "gpu_milli", "num_gpu", "share")):
        assert ours.tolist() == table[theirs].to_list()


FEW = [(workload, RULES[at % 5], 42 + at) for at, workload in enumerate(WORKLOADS)]  # another rule and another seed for each workload


@pytest.mark.parametrize("runs", [FEW, pytest.param([*product(WORKLOADS, RULES, SEEDS)], marks=pytest.mark.long)], ids=["few", "all"])
def test_every_published_value_is_equal(runs: list[tuple[str, str, int]]) -> None:
    for workload, rule, seed in runs:
        ours = filled(workload, rule, seed).curves
        theirs = published(workload, rule).filter(pl.col("seed") == seed)
        assert len(theirs) == 131
        assert ours["arrived"].to_list() == theirs["arrived"].to_list()
        for name, off in zip(VALUES, (1e-9, 1e-9, 5.1e-5)):  # the last is rounded to four places in the file
            assert np.abs(ours[name].to_numpy() - theirs[name].to_numpy()).max() < off, (workload, rule, seed, name)


def test_pods_go_where_they_went() -> None:
    table = pl.read_csv(reference("fgd/default_42_placements.csv.gz"))
    for rule in RULES:
        ours = filled("default", rule, 42).placements
        assert ours["pod"].to_list() == table["pod"].to_list()
        assert ours["node"].to_list() == table[rule].to_list(), rule
        assert ours["device"].to_list() == table[f"{rule}_gpu"].to_list(), rule


def test_the_final_state_is_the_one_that_the_authors_print() -> None:
    last = filled("default", "fgd", 42).filled
    assert last.used[-1] == 5_919_410
    assert round(last.fragments[-1], -1) == 291_360


@pytest.mark.long
@pytest.mark.parametrize(("workload", "rule", "within"), [("default", "random", (0.5, 0.5, 1.4)), ("gpuspec33", "fgd", (0.2, 0.2, 1.2))])
def test_means_over_the_seeds_agree_where_single_runs_cannot(workload: str, rule: str, within: tuple[float, float, float]) -> None:
    runs = [filled(workload, rule, seed).curves for seed in SEEDS]
    theirs = published(workload, rule).filter(pl.col("seed").is_in(list(SEEDS)))
    for name, most in zip(VALUES, within):
        ours = np.mean([run[name].to_numpy() for run in runs], axis=0)
        mean = theirs.group_by("arrived", maintain_order=True).agg(pl.col(name).mean())[name].to_numpy()
        assert np.abs(ours - mean).max() < most, name
