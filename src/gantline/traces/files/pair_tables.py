"""Reads measured pairs of configurations as Lucid (ASPLOS 2023) and Gavel (OSDI 2020) published them.

Gavel's are a JSON file, or a folder with one such file: speeds by device type and gang size. Lucid's are a folder that holds
``colocate_info.csv`` (model1,dataset1,batchsize1,amp1,speed1, the same with 2) and, where it is known how configurations run alone,
``single_data.csv`` (model,dataset,batchsize,amp,gpu_util,gmem_util,gmem). Without a folder a made-up table is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from gantline.core.errors import NotFoundError
from gantline.models.pair_table import AloneProfile, PairRow, PairTable, configuration_key
from gantline.models.throughput_table import ThroughputTable
from gantline.traces.files.throughputs import read_throughputs
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.read import RawTable

PARTS = ("model", "dataset", "batchsize", "amp")
PAIRS, ALONE = "colocate_info.csv", "single_data.csv"
MADE_UP = Path(__file__).with_name("example_pairs")


@dataclass(frozen=True)
class PairProfiles:
    """What a folder says of pairs, and of configurations that run alone."""

    pairs: PairTable
    alone: dict[str, AloneProfile]


def read_pair_profiles(given: Path = MADE_UP) -> PairProfiles | ThroughputTable:
    """The measurements in a folder or a file; a table that contradicts itself is refused."""
    path = given / PAIRS
    if not path.is_file():
        return read_throughputs(_table_of(given))
    raw = read_foreign(path, tuple(f"{part}{side}" for side in "12" for part in (*PARTS, "speed")))
    columns = (keys_of(raw, "1"), number(raw, "speed1"), keys_of(raw, "2"), number(raw, "speed2"))
    nan = float("nan")
    rows = (
        PairRow(a, nan if of_a is None else of_a, b, nan if of_b is None else of_b, raw.line(row))
        for row, (a, of_a, b, of_b) in enumerate(zip(*columns))
    )
    alone = given / ALONE
    return PairProfiles(PairTable.of(rows, str(path)), _read_alone(alone) if alone.is_file() else {})


def _table_of(given: Path) -> Path:
    """The file with speeds by device type that was given, itself or by its folder."""
    tables = [given] if given.is_file() else sorted(given.glob("*.json"))
    if len(tables) == 1:
        return tables[0]
    several = f"has several tables ({', '.join(path.name for path in tables)})"
    what = several if tables else f"has no file {PAIRS}, and no table by device type (JSON)"
    raise NotFoundError(what, where=f"profiles {given}", fix="name the table itself" if tables else "name a folder with measured pairs")


def _read_alone(path: Path) -> dict[str, AloneProfile]:
    raw = read_foreign(path, (*PARTS, *AloneProfile._fields))
    return dict(zip(keys_of(raw), profiles_of(raw.frame, raw)))


def profiles_of(frame: pl.DataFrame, raw: RawTable) -> list[AloneProfile]:
    """What a table says of each configuration that ran alone; NaN in empty cells."""
    columns: Sequence[list[float]] = [number(raw, name).fill_null(float("nan")).to_list() for name in AloneProfile._fields]
    return [AloneProfile(*row) for row in zip(*columns)]


def keys_of(raw: RawTable, side: str = "") -> list[str]:
    """The configuration of each row."""
    columns = (text(raw, f"{part}{side}").to_list() for part in PARTS)
    return [configuration_key(*cells) for cells in zip(*columns)]
