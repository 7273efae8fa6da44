"""Which policy, and would more GPUs help: the same jobs under several policies on the present cluster and on a larger one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import UsageError
from gantline.lab.experiment.compare import METRICS, Comparison, compare
from gantline.lab.experiment.difference import Difference
from gantline.lab.experiment.grid import Grid, PolicyChoice
from gantline.lab.experiment.history import NAME
from gantline.lab.experiment.intervals import change_interval
from gantline.lab.experiment.knowledge import truth_known
from gantline.lab.experiment.means import means_of
from gantline.lab.experiment.pairing import seed_columns
from gantline.lab.experiment.results import doubts_over, same_runs
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.significance import holm
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.numbers import spell
from gantline.traces.files.clusters import grown_cluster, is_cluster_file, read_cluster
from gantline.traces.files.device_tables import read_prices

HOURS_PER_MONTH = 730.0
SHOWN = ("jct_mean", "jct_p95", "queueing_mean", "utilization", "money")


@dataclass(frozen=True)
class Advice:
    """The result of the runs: `means` is a row per cluster and policy, `sentences` the answer in words."""

    sweep: Sweep
    policies: tuple[Comparison, ...]
    clusters: tuple[Comparison, ...]
    sentences: tuple[str, ...]
    answer: tuple[str, ...] = ()
    """The last of the sentences: which policy, what other clusters do for it, what was known, what they cost."""

    @property
    def means(self) -> pl.DataFrame:
        """A row per policy and cluster: means, and intervals where there are runs enough."""
        return means_of(self.sweep.results, SHOWN)

    def resting_on(self, words: Sequence[str]) -> Advice:
        """The same, with sentences on where the jobs come from at the end of the answer."""
        return replace(self, sentences=(*self.sentences, *words), answer=(*self.answer, *words))


def grid_of(base: Setting, policies: tuple[PolicyChoice, ...], clusters: Sequence[str], grow: float, seeds: tuple[int, ...]) -> Grid:
    """Every policy on the cluster, on it grown by a share, and on other ones."""
    if base.cluster in clusters:
        raise UsageError(f"'{base.cluster}' is the cluster itself", where="--also", fix="name another one")
    larger = grown_cluster(base.cluster, grow) if grow else ""
    others = [*clusters, *([larger] if larger else [])]
    if not others:
        raise UsageError("there is only one cluster", where="advise", fix="add --grow 10% or --also 20x8; on one cluster: gantline compare")
    titles = {larger: f"{base.cluster} {100 * grow:+,g} %"} if larger and is_cluster_file(base.cluster) else {}
    return Grid(base, policies, seeds=seeds, vary={"cluster": list(dict.fromkeys([base.cluster, *others]))}, titles=titles)


def _clusters(sweep: Sweep) -> dict[str, Cluster]:
    """The clusters of the runs, by what tables call them."""
    named = {str(case.axes["cluster"]): case.setting.cluster for case in sweep.cases}
    return {name: read_cluster(cluster) for name, cluster in named.items()}


def across(sweep: Sweep, axis: str) -> Sweep:
    """The same runs with the values of an axis in place of policies: comparing them says what the axis does."""
    cases = []
    for case in sweep.cases:
        rest = {name: value for name, value in case.axes.items() if name != axis}
        cases.append(replace(case, policy=str(case.axes[axis]), axes={"policy of": case.policy, **rest}))
    return replace(sweep, cases=tuple(cases))


def advise_runs(
    sweep: Sweep, base: Setting, *, against: str = "", metrics: Sequence[str] = METRICS, confidence: float = 0.95, left_out: str = ""
) -> Advice:
    """Judge the runs of `grid_of`; `left_out`: why what really happened is not among them."""
    here = sweep.results["policy"].n_unique() > 1
    policies = compare(sweep, against=against, metrics=metrics, confidence=confidence) if here else []
    clusters = compare(across(sweep, "cluster"), against=base.cluster, metrics=metrics, confidence=confidence)
    sentences: list[str] = []
    for one in policies:
        sentences += [f"On {one.place['cluster']}: {sentence}" for sentence in one.verdicts]
    for one in clusters:
        sentences += [f"Under {one.place['policy of']}: {sentence}" for sentence in one.verdicts]
    answer = (*_answer(sweep, base, clusters), *([left_out] if left_out else []), *truth_known(sweep), *_money(sweep, base))
    return Advice(sweep, tuple(policies), tuple(clusters), (*sentences, *answer), answer)


def _answer(sweep: Sweep, base: Setting, clusters: Sequence[Comparison]) -> list[str]:
    """The lowest mean JCT here, over seeds that all policies have, and what each other cluster does for that policy."""
    done = sweep.results.filter((pl.col("state") == "done") & (pl.col("cluster") == base.cluster))
    names = [name for name in done["policy"].unique(maintain_order=True).to_list() if name != NAME]  # what happened cannot be chosen
    sound = [name for name in names if not doubts_over(done, name)]
    clean = done.filter(pl.col("policy").is_in(sound))
    if not sound:
        return ["Every policy is in doubt on this cluster, so there is no advice."]
    shared = clean.filter(pl.len().over("seed") == len(sound))
    if shared.is_empty():
        return ["No seed ran under all policies, so there is no advice."]
    means = shared.group_by("policy", maintain_order=True).agg(pl.col("jct_mean").mean()).sort("jct_mean", maintain_order=True)
    best, value = means.row(0)
    alike = means.filter(pl.col("jct_mean") == value)["policy"].to_list()
    winners = f"{', '.join(alike)} alike" if len(alike) > 1 else best
    others = [name for name in means["policy"].to_list() if name not in alike]
    compared = _compared(shared, best, others)
    found = [f"Lowest mean JCT on {base.cluster}: {winners}, {spell(BY_KEY['jct_mean'], value)}{compared}."]
    for happened in done.filter(pl.col("policy") == NAME)["jct_mean"].head(1):
        change = f" ({100 * (value / happened - 1):+.0f} % under {best})" if happened > 0 else ""
        found.append(f"As it happened, mean JCT was {spell(BY_KEY['jct_mean'], happened)}{change}; that is one run, which decides nothing.")
    gpus = {name: sum(node.gpus for node in cluster.nodes) for name, cluster in _clusters(sweep).items()}
    for one in clusters:
        for item in one.differences:
            if one.place["policy of"] == best and item.metric == "jct_mean":
                found.append(_grown(item, best, gpus))
    return found


def _compared(rows: pl.DataFrame, best: str, others: Sequence[str]) -> str:
    """Which of the other policies differ from the best one by more than chance, all of them tested together."""
    if not others:
        return ""
    if rows["seed"].n_unique() == 1 or same_runs(rows):
        return ", in one run, which decides nothing"
    changes = [change_interval(*seed_columns(rows, "jct_mean", name, best)) for name in others]
    together = holm([change.p for change in changes])
    alike = [name for name, change, p in zip(others, changes, together) if not (p < 1.0 - change.confidence and change.low > 0)]
    counted = f"over {changes[0].samples} seeds"
    return f", {counted}; not told apart from {', '.join(alike)}" if alike else f", {counted}, told apart from all others"


def _grown(item: Difference, best: str, gpus: Mapping[str, int]) -> str:
    """What another cluster does for the policy; no verb without an interval."""
    more = 100 * (gpus[item.policy] / gpus[item.against] - 1) if gpus[item.against] else math.nan
    grew = f" ({f'{round(more, 1):+,g} %' if more else 'as many'} GPUs)" if math.isfinite(more) else ""
    helps = "helps" if item.sign > 0 else "does not help" if item.sign < 0 else "makes no clear difference"
    act = helps if item.change.known or item.doubtful else "in one run, which decides nothing" if not item.over else "over too few seeds"
    changed = f"{100 * item.change.value:+.0f} %" if item.change.value else "the same"
    return f"{item.policy}{grew} in place of {item.against} {act}: mean JCT {changed} under {best}."


def monthly_costs(sweep: Sweep, base: Setting) -> dict[str, float]:
    """What each cluster costs a month, where prices are known; empty where they are not."""
    prices = read_prices(base.prices or None)
    if not prices:
        return {}
    return {
        name: sum(prices.get(node.type, math.nan) * node.gpus for node in cluster.nodes) * HOURS_PER_MONTH
        for name, cluster in _clusters(sweep).items()
    }


def _money(sweep: Sweep, base: Setting) -> list[str]:
    costs = monthly_costs(sweep, base)
    return [
        f"{name} costs {cost:,.0f} a month, {cost - costs[base.cluster]:+,.0f} against {base.cluster}."
        for name, cost in costs.items()
        if name != base.cluster
    ]
