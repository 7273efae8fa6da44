"""Reads measured profiles in the layout that Pollux and Sia published: a folder per application, CSV files in it.

``placements[-TYPE].csv`` (placement, local_bsz, step_time, sync_time; a placement has one digit per node),
``scalability[-TYPE].csv`` (num_nodes, num_replicas, local_bsz, step_time, sync_time) and ``validation-BATCH.csv``
(progress, iteration, grad_sqr, grad_var, one row per epoch). Columns are found by name; others are left alone. The
folder of an application is read when a job asks for it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from gantline.core.arrays import Floats
from gantline.core.errors import GantlineError, NotFoundError, TraceError, near
from gantline.models.goodput.measured import Application, Profiles, Shape, StepTimes, Training, least_rotation
from gantline.models.links.allreduce import AllReducePlan, TimedAllReduce
from gantline.traces.importers.table import number, read_foreign, text
from gantline.traces.unpack import read_text
from gantline.traces.write import write_frame

Thing = TypeVar("Thing")

MADE_UP = Path(__file__).with_name("example_profiles")
_LAYOUT = "a folder per application with placements.csv, scalability.csv and validation-BATCH.csv files"


def read_profiles(given: Profiles | str | Path) -> Profiles:
    """The profiles below a folder; each application is read when it is first asked for."""
    if isinstance(given, Profiles):
        return given
    folder = Path(given)
    if not folder.is_dir():
        raise NotFoundError("no such folder", where=f"profiles {folder}", fix=f"name {_LAYOUT}")
    paths = {path.name: path for path in sorted(folder.iterdir()) if next(path.glob("placements*.csv"), None) is not None}
    if not paths:
        raise NotFoundError("holds no profiles", where=f"profiles {folder}", fix=f"name {_LAYOUT}")
    return Profiles(_OnDemand(paths, read_application), str(folder))


@cache
def example_profiles() -> Profiles:
    """Two made-up networks on three made-up device types, so that whatever needs profiles runs without any."""
    return Profiles(read_profiles(MADE_UP).applications, "the made-up profiles that ship with Gantline")


class _OnDemand(Mapping[str, Thing]):
    """What is at several places, each read when it is first asked for and then kept."""

    def __init__(self, paths: dict[str, Path], read: Callable[[Path], Thing]) -> None:
        self._paths, self._reader = paths, read
        self._read: dict[str, Thing] = {}

    def __getitem__(self, name: str) -> Thing:
        if name not in self._read:
            self._read[name] = self._reader(self._paths[name])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def read_application(folder: Path) -> Application:
    """One application's profiles."""
    found = {path.stem.removeprefix("placements").removeprefix("-"): path for path in sorted(folder.glob("placements*.csv"))}
    return Application(folder.name, _training(folder), _OnDemand(found, _step_times), str(folder))


def _step_times(path: Path) -> StepTimes:
    scalability = path.with_name(path.name.replace("placements", "scalability"))
    more = _scalability(scalability) if scalability.is_file() else np.empty((0, 5))
    return StepTimes(_placements(path), more, str(path))


def _placements(path: Path) -> dict[Shape, Floats]:
    found: dict[Shape, list[tuple[float, ...]]] = {}
    for line, row in _rows(path, ("placement", "local_bsz", "step_time", "sync_time")):
        digits = row["placement"].strip()
        if not digits.isdigit() or "0" in digits:
            raise TraceError(
                f"'{digits}' is no placement", file=str(path), line=line, field="placement", fix="one digit from 1 to 9 per node"
            )
        shape = least_rotation([int(digit) for digit in digits])
        found.setdefault(shape, []).append((_above(row, "local_bsz", path, line), *_times(row, path, line)))
    return {shape: _by_batch(rows) for shape, rows in found.items()}


def _by_batch(rows: list[tuple[float, ...]]) -> Floats:
    """Rows by ascending batch; of those with the same batch the first, for a line has one value."""
    table = np.array(rows, dtype=np.float64)
    _, first = np.unique(table[:, 0], return_index=True)
    return table[first]


def _scalability(path: Path) -> Floats:
    names = ("num_nodes", "num_replicas", "local_bsz")
    rows = [
        (*(_above(row, name, path, line) for name in names), *_times(row, path, line))
        for line, row in _rows(path, (*names, "step_time", "sync_time"))
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


def _training(folder: Path) -> Training:
    files: dict[float, Path] = {}
    for path in folder.glob("validation-*.csv"):
        text = path.stem.removeprefix("validation-")
        if not text.isdigit() or int(text) < 1:
            raise TraceError(f"'{text}' is no batch", file=str(path), fix="name the file validation-BATCH.csv")
        files[float(text)] = path
    if not files:
        raise NotFoundError("no validation-BATCH.csv", where=str(folder), fix="one file per total batch, a row per epoch")
    batches = sorted(files)
    tables = [_validation(files[batch]) for batch in batches]
    epochs = min(len(table) for table in tables)
    stacked = np.stack([table[:epochs] for table in tables])
    return Training(np.array(batches), *(np.ascontiguousarray(stacked[:, :, column]) for column in range(4)))


def _validation(path: Path) -> Floats:
    rows, before = [], 0.0
    for line, row in _rows(path, ("progress", "iteration", "grad_sqr", "grad_var")):
        progress = _above(row, "progress", path, line)
        if progress <= before:
            raise TraceError(f"{progress:g} is no progress beyond {before:g}", file=str(path), line=line, field="progress")
        before = progress
        noise = [_number(row, name, path, line) for name in ("grad_sqr", "grad_var")]
        rows.append((progress, _above(row, "iteration", path, line), *noise))
    return np.array(rows, dtype=np.float64)


def _times(row: dict[str, str], path: Path, line: int) -> tuple[float, float]:
    step, sync = _above(row, "step_time", path, line), _number(row, "sync_time", path, line)
    if sync < 0.0:
        raise TraceError(f"{sync:g} is below zero", file=str(path), line=line, field="sync_time", fix="give seconds")
    return step, sync


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line numbers and rows of a table; it must have these columns, and a row at least."""
    reader = csv.reader(io.StringIO(read_text(path)))
    names = [name.strip() for name in next(reader)]
    for name in columns:
        if name not in names:
            raise TraceError(f"has no column '{name}'", file=str(path), line=1, fix=near(name, names))
    at = [names.index(name) for name in columns]
    count = 0
    for line, row in enumerate(reader, start=2):
        if not row:
            continue
        if len(row) != len(names):
            raise TraceError(f"has {len(row)} of {len(names)} fields", file=str(path), line=line)
        count += 1
        yield line, {name: row[i] for name, i in zip(columns, at)}
    if not count:
        raise TraceError("has no rows", file=str(path), fix="was the download or the export complete?")


def _number(row: dict[str, str], name: str, path: Path, line: int) -> float:
    try:
        value = float(row[name])
    except ValueError:
        raise TraceError(f"'{row[name]}' is not a number", file=str(path), line=line, field=name) from None
    if not math.isfinite(value):
        raise TraceError(f"{row[name]} is not possible", file=str(path), line=line, field=name, fix="give a finite number")
    return value


def _above(row: dict[str, str], name: str, path: Path, line: int) -> float:
    value = _number(row, name, path, line)
    if value <= 0.0:
        raise TraceError(f"{value:g} is not above zero", file=str(path), line=line, field=name)
    return value


# Writes measured epochs by CPUs where Synergy's profiles are read from: ``epochs.csv`` of a folder.

EPOCHS = "epochs.csv"
COLUMNS = ("model", "cpus_per_gpu", "epoch_s", "data_GB", "memory_MBps", "steps")


def write_epochs(folder: Path, network: str, seconds: Mapping[float, float], data: float, bandwidth: float, steps: float) -> Path:
    """Enter the epochs of a network, by CPUs per GPU; rows of other networks stay."""
    path = folder / EPOCHS
    rows = [(network, float(cpus), round(seconds[cpus], 6), float(data), float(bandwidth), float(steps)) for cpus in sorted(seconds)]
    fresh = pl.DataFrame(rows, schema=list(COLUMNS), orient="row")
    if path.is_file():
        known = pl.read_csv(path)
        if tuple(known.columns) != COLUMNS:
            raise TraceError("has other columns", file=str(path), line=1, fix="it needs " + ",".join(COLUMNS))
        fresh = pl.concat([known.filter(pl.col("model") != network).cast(fresh.schema), fresh])
    folder.mkdir(parents=True, exist_ok=True)
    return write_frame(fresh, path)


# Measured AllReduces: ``plan,servers,size,seconds``; a plan is direct, ring, halving-doubling, one-server, or levels
# such as 6x2.

KINDS = ("direct", "ring", "halving-doubling", "one-server")


def parse_plan(word: str) -> AllReducePlan | None:
    """The plan of that name; None: no plan is called so."""
    if word in KINDS:
        return AllReducePlan(word)
    factors = word.split("x")
    return AllReducePlan("levels", tuple(map(int, factors))) if all(factor.isdecimal() for factor in factors) else None


def read_timed(src: Path) -> list[TimedAllReduce]:
    """The measurements of a file, each checked against its plan."""
    raw = read_foreign(src, ("plan", "servers", "size", "seconds"))
    numbers = (number(raw, name, required=True).to_list() for name in ("servers", "size", "seconds"))
    found = []
    for row, (word, servers, size, seconds) in enumerate(zip(text(raw, "plan").to_list(), *numbers)):
        plan = parse_plan(word)
        if plan is None:
            raise raw.error(f"no plan is called '{word}'", row=row, field="plan", fix=f"{', '.join(KINDS)}, or levels such as 6x2")
        if servers != int(servers) or servers < 2 or size <= 0.0:
            raise raw.error(
                f"{size:g} units on {servers:g} servers", row=row, field="servers", fix="two servers or more, a size above zero"
            )
        try:
            plan.levels(int(servers), size)
        except GantlineError as error:
            raise raw.error(error.what, row=row, field="plan", fix=error.fix) from None
        found.append(TimedAllReduce(plan, int(servers), size, seconds))
    return found
