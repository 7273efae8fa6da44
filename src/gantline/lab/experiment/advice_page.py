"""The page of an advice: the answer first, the clusters side by side, what they cost, what happened, and the doubts below."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import polars as pl

from gantline.lab.experiment.advice import SHOWN, Advice, monthly_costs
from gantline.lab.experiment.charts import charts_of
from gantline.lab.experiment.history import NAME
from gantline.lab.experiment.remarks import notes_of, warnings_of
from gantline.lab.experiment.setting import Setting
from gantline.lab.report.html import figures_section, page
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.numbers import spellers
from gantline.lab.report.page.answer import folded
from gantline.lab.report.page.tables import framed

_SIDE_BY_SIDE = tuple(key for key in SHOWN if key != "money")


def render_advice(found: Advice, base: Setting, title: str = "Gantline advice") -> str:
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
    return page(title, f"{len(found.sweep.cases)} runs on {base.cluster} and other clusters.", [each for each in sections if each], charts)


def _table(means: pl.DataFrame, costs: Mapping[str, float]) -> str:
    """A row per policy, what happened last; under each cluster its metrics, and what it costs a month."""
    clusters = list(dict.fromkeys(means["cluster"].to_list()))
    policies = sorted(dict.fromkeys(means["policy"].to_list()), key=lambda name: name == NAME)
    writers = spellers([BY_KEY[key] for key in _SIDE_BY_SIDE], {key: means[key].to_list() for key in _SIDE_BY_SIDE})
    heads = ['<th scope="col"></th>', *(f'<th scope="col" colspan="{len(_SIDE_BY_SIDE)}">{escape(name)}</th>' for name in clusters)]
    names = ['<th scope="col" class="name">policy</th>']
    names += [f'<th scope="col">{escape(BY_KEY[key].title)}</th>' for _ in clusters for key in _SIDE_BY_SIDE]
    rows = []
    for policy in policies:
        cells = [f'<td class="text">{escape(policy)}</td>']
        for cluster in clusters:
            some = means.filter((pl.col("policy") == policy) & (pl.col("cluster") == cluster))
            told = [writers[key](some[key][0]) for key in _SIDE_BY_SIDE] if some.height else ["–"] * len(_SIDE_BY_SIDE)
            told[0] += some["mark"][0] if some.height else ""
            cells += [f"<td>{escape(each)}</td>" for each in told]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    if costs:
        cells = [f'<td colspan="{len(_SIDE_BY_SIDE)}">{costs[name]:,.0f} a month</td>' for name in clusters]
        rows.append(f'<tr><td class="text">price</td>{"".join(cells)}</tr>')
    head = f"<thead><tr>{''.join(heads)}</tr><tr>{''.join(names)}</tr></thead>"
    return framed(f'<table id="clusters">{head}<tbody>{"".join(rows)}</tbody></table>')
