"""Files of measured speeds: bundles of profiles, throughput tables, and pairs of configurations that share devices."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import polars as pl

from gantline.core.errors import NotFoundError, TraceError
from gantline.core.json_reader import loads
from gantline.models.profiles.bundle import FORMAT, Bundle
from gantline.models.sharing.pair_table import AloneProfile, PairRow, PairTable, configuration_key
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.unpack import read_text


def read_bundle(given: Bundle | str | Path) -> Bundle:
    """A bundle, or the file that holds one."""
    if isinstance(given, Bundle):
        return given
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"profiles {path}", fix=f"make one: gantline profile run NAME --file {path} -- COMMAND")
    return parse_bundle(read_text(path), str(path))


def parse_bundle(text: str, source: str) -> Bundle:
    """The bundle that a text holds."""
    try:
        body = loads(text)
    except json.JSONDecodeError as error:
        raise TraceError(f"is not JSON: {error.msg}", file=source, line=error.lineno) from None
    return Bundle.of(body, source)


def is_bundle(text: str) -> bool:
    """Whether a JSON text is a bundle rather than a plain throughput table."""
    return f'"{FORMAT.split("/")[0]}/' in text[:4096]


def write_bundle(bundle: Bundle, path: str | Path) -> None:
    """Write a bundle; a reader sees the old file or the new one."""
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(bundle.to_json(), indent=1) + "\n", encoding="utf-8")
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def default_bundle() -> Bundle:
    """The profiles that come with the product; `docs/live-gpu.md` says how they were measured."""
    place = files("gantline.traces.files") / "default_profiles.json"
    return parse_bundle(place.read_text(encoding="utf-8"), "default profiles")


# Measured throughputs, from a value or a file.

_COLUMNS = ("worker_type", "job_type", "scale_factor", "steps_per_s")


def read_throughputs(given: ThroughputTable | str | Path) -> ThroughputTable:
    """A table, or the file that holds one: JSON in Gavel's layout, a bundle of profiles, or CSV with a row per speed alone."""
    if isinstance(given, ThroughputTable):
        return given
    path = Path(given)
    if not path.is_file():
        raise NotFoundError("no such file", where=f"throughputs {path}", fix="name a table in Gavel's layout (JSON)")
    text = read_text(path)
    if path.suffix == ".csv":
        return ThroughputTable.of(_from_rows(text, path), str(path))
    if is_bundle(text):
        return parse_bundle(text, str(path)).throughputs(str(path))
    return ThroughputTable.parse(text, str(path))


def _from_rows(text: str, path: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Speeds alone from the columns worker_type, job_type, scale_factor, steps_per_s (as Shockwave's are published)."""
    reader = csv.DictReader(io.StringIO(text))
    for name in _COLUMNS:
        if name not in (reader.fieldnames or ()):
            raise TraceError(f"has no column '{name}'", file=str(path), line=1, fix="it needs " + ",".join(_COLUMNS))
    found: dict[str, dict[str, dict[str, float]]] = {}
    for line, row in enumerate(reader, start=2):
        worker, kind, size, speed = (row[name] for name in _COLUMNS)
        try:
            found.setdefault(worker, {})[str((kind, int(size)))] = {"null": float(speed)}
        except (TypeError, ValueError):
            raise TraceError("holds no gang size and speed", file=str(path), line=line, fix="write v100,LM (batch size 5),1,12") from None
    return found


# Reads measured pairs of configurations as Lucid (ASPLOS 2023) and Gavel (OSDI 2020) published them.
#
# Gavel's are a JSON file, or a folder with one such file: speeds by device type and gang size. Lucid's are a folder
# that holds ``colocate_info.csv`` (model1,dataset1,batchsize1,amp1,speed1, the same with 2) and, where it is known
# how configurations run alone, ``single_data.csv`` (model,dataset,batchsize,amp,gpu_util,gmem_util,gmem). Without a
# folder a made-up table is read.

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
