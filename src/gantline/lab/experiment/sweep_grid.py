"""The means of a sweep as a grid: a row per policy, the values of an axis under its name, an interval in every cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

import polars as pl

from gantline.lab.experiment.means import SHOWN, means_of, spread
from gantline.lab.report.figures.for_page import sample
from gantline.lab.report.metrics import BY_KEY
from gantline.lab.report.metrics.catalogue import MEANINGS
from gantline.lab.report.numbers import spellers
from gantline.lab.report.page.tables import framed

Row = tuple[Any, ...]
Write = Callable[[float], str]


def means_section(results: pl.DataFrame) -> list[str]:
    """The means with 95 % intervals over seeds: a grid over the axis that varies for each metric, or one table of all metrics."""
    frame = means_of(results, SHOWN)
    axes = [axis for axis in frame.columns[1 : frame.columns.index("runs")] if frame[axis].n_unique() > 1]
    write = spellers([BY_KEY[key] for key in SHOWN], {key: frame[key].to_list() for key in SHOWN})
    if axes:
        tables = _grids(frame, axes, write)
    else:
        tables = [_metrics(frame, write)]
    bracketed = any((frame[f"{key}_low"] < frame[f"{key}_high"]).any() for key in SHOWN)
    runs = sorted({int(count) for count in frame["runs"]})
    text = f"Means of {runs[0]} runs each." if len(runs) == 1 else f"Means of {runs[0]} to {runs[-1]} runs."
    text += " In brackets: 95 % intervals of the means over seeds." if bracketed else ""
    text += " Failed runs are left out." if frame["failed"].sum() else ""
    text += " (!) marks means of runs in doubt." if frame["mark"].str.len_chars().sum() else ""
    return [*tables, f'<p class="note">{text} Point at a metric for what it means.</p>']


def _grids(frame: pl.DataFrame, axes: list[str], write: Mapping[str, Write]) -> list[str]:
    """A grid per metric; those after the first are folded away."""
    across = "load" if "load" in axes else axes[0]
    beside = ["policy", *(axis for axis in axes if axis != across)]
    rows = list(dict.fromkeys(frame.select(beside).iter_rows()))
    values = frame[across].unique(maintain_order=True).to_list()
    cells = {(row, value): means for row, value, means in zip(frame.select(beside).iter_rows(), frame[across], frame.iter_rows(named=True))}
    grids = []
    for key in SHOWN:
        heads = "".join(f'<th scope="col" rowspan="2" class="text">{escape(name)}</th>' for name in beside)
        top = f'<tr>{heads}<th scope="colgroup" colspan="{len(values)}" class="across">{escape(across)}</th></tr>'
        under = "".join(f'<th scope="col" class="under">{escape(_plain(value))}</th>' for value in values)
        body = "".join(_grid_row(at, row, [cells.get((row, value)) for value in values], key, write[key]) for at, row in enumerate(rows))
        table = f'<table id="grid-{key}"><thead>{top}<tr>{under}</tr></thead><tbody>{body}</tbody></table>'
        grids.append(_title(key) + framed(table))
    more = "".join(grids[1:])
    return [grids[0], f"<details><summary>{len(grids) - 1} more metrics as grids</summary>{more}</details>"]


def _grid_row(at: int, row: Row, found: list[dict[str, Any] | None], key: str, write: Write) -> str:
    names = [f'<th scope="row" class="text">{sample(at)}{escape(_plain(row[0]))}</th>']
    names += [f'<td class="text">{escape(_plain(value))}</td>' for value in row[1:]]
    cells = (f"<td>{escape(_spelt(one, key, write))}</td>" if one else "<td>–</td>" for one in found)
    return f"<tr>{''.join(names)}{''.join(cells)}</tr>"


def _metrics(frame: pl.DataFrame, write: Mapping[str, Write]) -> str:
    """A row per policy, a column per metric."""
    heads = '<th scope="col" class="text">policy</th>'
    heads += "".join(f'<th scope="col" title="{escape(MEANINGS.get(key, ""))}">{escape(BY_KEY[key].title)}</th>' for key in SHOWN)
    rows = []
    for at, row in enumerate(frame.iter_rows(named=True)):
        cells = "".join(f"<td>{escape(_spelt(row, key, write[key]))}</td>" for key in SHOWN)
        rows.append(f'<tr><th scope="row" class="text">{sample(at)}{escape(row["policy"])}</th>{cells}</tr>')
    return framed(f'<table id="means"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table>')


def _spelt(row: Mapping[str, Any], key: str, write: Write) -> str:
    """The mean, its interval, and the mark of doubt."""
    bound = spread(row[f"{key}_low"], row[f"{key}_high"], write)
    return f"{write(row[key])}{f' ({bound})' if bound else ''}{row['mark']}"


def _title(key: str) -> str:
    return f'<h3 title="{escape(MEANINGS.get(key, ""))}">{escape(BY_KEY[key].title)}</h3>'


def _plain(value: object) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
