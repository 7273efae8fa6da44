"""Reproductions as Markdown: for a terminal, for the folder of the results, for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gantline.lab.experiment.reproduce.study import Reproduction


def section(found: Reproduction) -> str:
    """One reproduction: paper, figure, what is run, claims, numbers, verdict."""
    study = found.study
    claims = pl.DataFrame(
        [
            {
                "claim": claim.statement,
                "kind": claim.kind,
                "against": claim.baseline,
                "tolerance": claim.tolerance,
                "published": claim.published,
                "found": claim.found,
                "verdict": claim.verdict,
            }
            for claim in found.claims
        ]
    )
    parts = [
        f"## {study.name}",
        f"{study.paper}. {study.figure}.",
        study.what
        if found.scale == "full"
        else f"{study.what} *Small scale: an excerpt of this in seconds. Differences may be much larger or "
        "smaller than at full scale, which docs/reproductions.md shows.*",
        f"**{found.verdict}**",
        markdown_table(claims),
        markdown_table(found.table),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def page(found: Sequence[Reproduction]) -> str:
    """The page of the documentation."""
    head = (
        "# Reproductions\n\n"
        "`gantline reproduce NAME` runs a published figure again and holds what it finds against what was published. A claim is either a\n"
        "shape (the order, where curves part) or a number; the two are counted apart, and a figure counts as reproduced in shape\n"
        "when only numbers differ. What a claim is held against and how far off it may be is part of the study's definition, laid down\n"
        "before it runs: a published number is met within 10 % unless the study says otherwise. A claim that does not hold is shown as\n"
        "such.\n\n"
        "<!-- not run: it takes a quarter of an hour and writes into the documentation -->\n"
        "```console\n$ gantline reproduce all --scale full --data FOLDER --page docs/reproductions.md\n```\n\n"
        "writes this page. Equal versions write equal pages. Some figures need files that their authors published and that are not\n"
        "ours to ship; `--data` names the folder they lie in, and where one is missing, the message says where it comes from.\n"
    )
    return "\n".join([head, *(section(one) for one in found)])


def markdown_table(frame: pl.DataFrame) -> str:
    """A frame as a Markdown table."""
    if frame.is_empty():
        return ""
    rows = [[_cell(name) for name in frame.columns], ["---:" if dtype.is_numeric() else "---" for dtype in frame.dtypes]]
    rows += [[_cell(value) for value in row] for row in frame.iter_rows()]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cell(value: object) -> str:
    if isinstance(value, float):
        if value != value:
            return "–"
        return f"{value:g}" if abs(value) < 10 and value == round(value, 4) else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
    return "–" if value is None else str(value).replace("|", "\\|")
