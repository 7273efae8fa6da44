"""Which policy, and would more GPUs help: the same jobs under several policies on the present cluster and on a larger one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import polars as pl

from gantline.core.cluster import Cluster
from gantline.core.errors import TraceError, UsageError
from gantline.engine.regime import find_regime
from gantline.lab.experiment.charts import charts_of
from gantline.lab.experiment.compare import Comparison, compare, seed_columns
from gantline.lab.experiment.grid import Case, Grid, PolicyChoice
from gantline.lab.experiment.intervals import change_interval, holm
from gantline.lab.experiment.messages import notes_of, truth_known, warnings_of
from gantline.lab.experiment.results import HAPPENED, doubts_over, means_of, same_runs
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.sweep import Sweep
from gantline.lab.experiment.verdict import Difference
from gantline.lab.report.html import figures_section, page
from gantline.lab.report.labels import spell, spellers
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.page.answer import folded
from gantline.lab.report.page.tables import framed
from gantline.traces.files.clusters import grown_cluster, is_cluster_file, read_cluster
from gantline.traces.files.device_tables import read_prices
from gantline.traces.to_tables import load_tables

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


def advise_runs(sweep: Sweep, base: Setting, *, against: str = "", left_out: str = "") -> Advice:
    """Judge the runs of `grid_of`; `left_out`: why what really happened is not among them."""
    here = sweep.results["policy"].n_unique() > 1
    policies = compare(sweep, against=against) if here else []
    clusters = compare(across(sweep, "cluster"), against=base.cluster)
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
    names = [name for name in done["policy"].unique(maintain_order=True).to_list() if name != HAPPENED]  # what happened cannot be chosen
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
    for happened in done.filter(pl.col("policy") == HAPPENED)["jct_mean"].head(1):
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


# The page of an advice: the answer first, the clusters side by side, what they cost, what happened, and the doubts below.

_SIDE_BY_SIDE = tuple(key for key in SHOWN if key != "money")


def render_advice(found: Advice, base: Setting) -> str:
    """The page as text; the same runs give the same text."""
    charts = {chart.name: chart for chart in charts_of(found.sweep.results)}
    doubts = folded(warnings_of(found.sweep), [f"{text}." for text in notes_of(found.sweep)])
    details = [f"<li>{escape(text)}</li>" for text in found.sentences[: len(found.sentences) - len(found.answer)]]
    sections = [
        *(f'<p class="headline">{escape(text)}</p>' for text in found.answer),
        *doubts,
        "<h2>Clusters side by side</h2>",
        _table(found.means, monthly_costs(found.sweep, base)),
        *(figures_section(charts) if charts else ()),
        f"<details><summary>Every comparison</summary><ul>{''.join(details)}</ul></details>" if details else "",
    ]
    return page(
        "Gantline advice",
        f"{len(found.sweep.cases)} runs on {base.cluster} and other clusters.",
        [each for each in sections if each],
        charts,
    )


def _table(means: pl.DataFrame, costs: Mapping[str, float]) -> str:
    """A row per policy, what happened last; under each cluster its metrics, and what it costs a month."""
    clusters = list(dict.fromkeys(means["cluster"].to_list()))
    policies = sorted(dict.fromkeys(means["policy"].to_list()), key=lambda name: name == HAPPENED)
    writers = spellers([BY_KEY[key] for key in _SIDE_BY_SIDE], {key: means[key].to_list() for key in _SIDE_BY_SIDE})
    heads = ['<th scope="col"></th>', *(f'<th scope="col" colspan="{len(_SIDE_BY_SIDE)}">{escape(name)}</th>' for name in clusters)]
    names = ['<th scope="col" class="name">policy</th>']
    names += [f'<th scope="col">{escape(BY_KEY[key].title)}</th>' for _ in clusters for key in _SIDE_BY_SIDE]
    rows = []
    for policy in policies:
        cells = [f'<td class="text">{escape(policy)}</td>']
        for cluster in clusters:
            some = means.filter((pl.col("policy") == policy) & (pl.col("cluster") == cluster))
            texts = [writers[key](some[key][0]) for key in _SIDE_BY_SIDE] if some.height else ["–"] * len(_SIDE_BY_SIDE)
            texts[0] += some["mark"][0] if some.height else ""
            cells += [f"<td>{escape(each)}</td>" for each in texts]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if costs:
        cells = [f'<td colspan="{len(_SIDE_BY_SIDE)}">{costs[name]:,.0f} a month</td>' for name in clusters]
        rows.append(f'<tr><td class="text">price</td>{"".join(cells)}</tr>')
    head = f"<thead><tr>{''.join(heads)}</tr><tr>{''.join(names)}</tr></thead>"
    return framed(f'<table id="clusters">{head}<tbody>{"".join(rows)}</tbody></table>')


# Jobs that a cluster can never run, found before a comparison of clusters: each run would end with the same mistake.


def check_jobs_fit(cases: Sequence[Case]) -> None:
    """Refuse once what all runs on some of the clusters would refuse. Jobs of the first seed are looked at, as the simulator does."""
    if any(_changes_jobs(case.setting) for case in cases):
        return  # which jobs there are, and what they ask for, differs from run to run
    clusters: dict[str, Setting] = {}
    for case in cases:
        clusters.setdefault(str(case.axes["cluster"]), case.setting)
    found = {name: error for name, setting in clusters.items() if (error := _mistake(setting)) is not None}
    if found:
        raise _together(found)


def _changes_jobs(setting: Setting) -> bool:
    return bool(setting.profiles) or setting.make_policy().keeps_reservations


def _mistake(setting: Setting) -> TraceError | None:
    """The mistake with which a run of this setting would end, where it is one of the jobs on this cluster."""
    trace = setting.trace.with_throughputs(setting.named_files().get("throughputs", "")).load(setting.seed)
    try:
        load_tables(trace, read_cluster(setting.cluster), sizes_bind=find_regime(str(setting.regime)).sizes_bind)
    except TraceError as error:
        return error
    return None


def _together(found: dict[str, TraceError]) -> TraceError:
    """One mistake that names the job, the trace and every cluster; where clusters fail by other jobs, each of these."""
    first = next(iter(found.values()))
    alike = [name for name, error in found.items() if (error.line, error.field) == (first.line, first.field)]
    others = [error.what for name, error in found.items() if name not in alike]
    nor = f", nor on {', '.join(map(repr, alike[1:]))}" if alike[1:] else ""
    return TraceError("; ".join([first.what + nor, *others]), file=first.file, line=first.line, field=first.field, fix=first.fix)
