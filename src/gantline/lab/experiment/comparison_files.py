"""Comparisons as files: differences and pairs as Parquet, verdicts as text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from gantline.lab.experiment.compare import Comparison
from gantline.lab.experiment.whole_files import write_frame, write_text


def store_comparisons(found: Sequence[Comparison], folder: Path) -> None:
    """Write them beside the results of their sweep."""
    write_frame(folder / "differences.parquet", differences_of(found))
    write_frame(
        folder / "pairs.parquet", pl.concat([comparison.pairs.with_columns(**_place(comparison)) for comparison in found], how="diagonal")
    )
    write_text(folder / "verdict.txt", "\n".join(sentences_of(found)) + "\n")


def differences_of(found: Sequence[Comparison]) -> pl.DataFrame:
    """All differences in one table."""
    return pl.concat([comparison.frame for comparison in found], how="diagonal")


def sentences_of(found: Sequence[Comparison]) -> list[str]:
    """All verdicts, each with its place where there are several."""
    sentences = []
    for comparison in found:
        place = ", ".join(f"{name} {value}" for name, value in comparison.place.items())
        sentences += [f"At {place}: {sentence}" if place else sentence for sentence in comparison.verdicts]
    return sentences


def _place(comparison: Comparison) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in comparison.place.items()}
