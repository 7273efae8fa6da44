"""A Sphinx extension that writes ``docs/columns/index.md``: the columns of jobs, options, nodes and devices."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantline.core.columns import Column, DeviceTable, JobTable, NodeTable, Table
from gantline.core.options import OptionTable
from generated_pages import write_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx

INTRODUCTION = """# Columns

This page is written from the tables at build time. Compiled policies read these columns from `snapshot.jobs.matrices()`
and `snapshot.cluster.matrices()`, `F[Job.DUE, row]` and `NI[Node.FREE, node]`; the constants are in
`gantline.core.columns`. What a policy may not know is NaN there. *Set by* is the input that sets a column; where there
is none, the engine keeps it.
"""


def rows(table: type[Table]) -> list[str]:
    """A line per column."""
    return [f"| {' | '.join(cells(column))} |" for column in table.columns()]


def cells(column: Column[Any]) -> list[str]:
    """Its constant, its kind, what a blank row has, its unit, its input, and what it means."""
    kind = "number" if column.kind.__name__ == "float64" else "whole number"
    hidden = " Hidden from policies." if column.secret else ""
    constant = f"`{column.table.places.__name__}.{column.name.upper()}`"
    return [constant, kind, f"{column.default:g}", column.unit, column.source, column.what + hidden]


def page() -> str:
    """All tables."""
    parts = [INTRODUCTION]
    for table in (JobTable, OptionTable, NodeTable, DeviceTable):
        title = f"## {(table.__doc__ or '').partition('.')[0]}"
        parts.append(
            "\n".join([title, "", "| column | kind | blank | unit | set by | meaning |", "|---|---|---|---|---|---|", *rows(table), ""])
        )
    return "\n".join(parts)


def generate(sphinx: Sphinx) -> None:
    """Write the page before Sphinx looks for sources."""
    write_pages(Path(sphinx.srcdir) / "columns", {"index.md": page()})


def setup(sphinx: Sphinx) -> dict[str, Any]:
    sphinx.connect("builder-inited", generate)
    return {"parallel_read_safe": True}
