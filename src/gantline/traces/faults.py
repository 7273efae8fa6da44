"""What can be wrong with the rows of a trace.

Each :class:`Rule` is one expression over whole columns. Rows are only looked at one by one where a rule found
something, so that a clean trace of a million jobs passes quickly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import polars as pl

from gantline.core.errors import UsageError, near
from gantline.core.fields import LONGEST
from gantline.traces.options import CPU_ONLY_PATTERN, OPTIONS_PATTERN, losses_of
from gantline.traces.rename import alias_of
from gantline.traces.schema import COLUMNS, REQUIRED

REPAIR = "gantline trace check FILE --repair OUT"


@dataclass(frozen=True)
class Finding:
    """One kind of contradiction and the rows that show it; no rows: the table as a whole."""

    field: str
    what: str
    fix: str
    repairable: bool = False
    rows: tuple[int, ...] = ()
    cells: pl.DataFrame | None = None

    def describe(self, position: int) -> str:
        """The sentence about the row at ``rows[position]``."""
        return self.what if self.cells is None else self.what.format(**self.cells.row(position, named=True))


@dataclass(frozen=True)
class Rule:
    """A condition that no row may meet, and what to say about a row that does."""

    field: str
    bad: pl.Expr
    what: str
    fix: str
    repairable: bool = False

    @cached_property
    def needs(self) -> frozenset[str]:
        """The columns that it looks at."""
        return frozenset(self.bad.meta.root_names())


_C = {name: pl.col(name) for name in COLUMNS}
_NO_CPU = ~(pl.col("options").str.contains(CPU_ONLY_PATTERN) | (pl.col("cpus").fill_null(0.0) > 0))
RULES: tuple[Rule, ...] = (
    Rule("arrival", _C["arrival"] < 0, "arrival {arrival:g} is negative", "count seconds from the start of the trace"),
    Rule(
        "arrival",
        _C["arrival"].diff() < 0,
        "arrives at {arrival:g}, before the row above it at {_before:g}",
        f"sort the rows by arrival: {REPAIR}",
        repairable=True,
    ),
    Rule("duration", _C["duration"] <= 0, "duration {duration:g} is not positive", "give the run time or drop the row"),
    Rule(
        "duration",
        _C["duration"].is_between(LONGEST, math.inf, closed="none"),
        "duration {duration:g} is longer than 300 years",
        "times are in seconds",
    ),
    Rule(
        "arrival",
        _C["arrival"].is_between(LONGEST, math.inf, closed="none"),
        "arrival {arrival:g} is more than 300 years away",
        "times are in seconds",
    ),
    Rule("gpus", _C["gpus"] < 0, "{gpus} GPUs", "ask for 1 or more"),
    Rule(
        "gpus",
        (_C["gpus"] == 0) & _NO_CPU,
        "0 GPUs, and no CPUs either",
        "ask for 1 or more; a job without GPUs needs `cpus`, or an alternative such as cpu:0/20=9000 in `options`",
    ),
    Rule("min_gpus", (_C["min_gpus"] < 0) & (_C["gpus"] >= 0), "min_gpus {min_gpus} is negative", "give 0 or more"),
    Rule(
        "min_gpus",
        _C["min_gpus"] > _C["gpus"],
        "min_gpus {min_gpus} is above the {gpus} GPUs asked for",
        "keep min_gpus <= gpus <= max_gpus",
    ),
    Rule(
        "max_gpus",
        _C["max_gpus"] < _C["gpus"],
        "max_gpus {max_gpus} is below the {gpus} GPUs asked for",
        "keep min_gpus <= gpus <= max_gpus",
    ),
    Rule(
        "work",
        (_C["work"] <= 0) & (_C["duration"] > 0),
        "work {work:g} is not positive",
        "give the amount of work, or leave it empty",
    ),
    Rule("weight", _C["weight"] <= 0, "weight {weight:g} is not positive", "give a weight above 0, or leave it empty"),
    Rule(
        "deadline",
        _C["deadline"] < _C["arrival"],
        "deadline {deadline:g} is before the arrival at {arrival:g}",
        "deadlines count from the start of the trace, as arrivals do",
    ),
    Rule("cpus", _C["cpus"] < 0, "{cpus:g} CPUs", "give 0 or more, or leave it empty"),
    Rule(
        "gpu_demand",
        (_C["gpu_demand"] < 0) | ((_C["gpu_demand"] == 0) & (_C["gpus"] > 0)),
        "needs {gpu_demand:g} of its GPUs",
        "give more than 0, or leave it empty: all of them",
    ),
    Rule(
        "gpu_demand",
        _C["gpu_demand"] > _C["gpus"],
        "needs {gpu_demand:g} of {gpus} GPUs",
        "give as many GPUs as it needs, or leave it empty: all of them",
    ),
    Rule("memory", _C["memory"] < 0, "{memory:g} GB of memory", "give 0 or more, or leave it empty"),
    Rule("storage", _C["storage"] < 0, "{storage:g} MB/s of storage", "give 0 or more, or leave it empty"),
    Rule("attempts", _C["attempts"] < 0, "{attempts} attempts", "give 0 or more, or leave it empty"),
    Rule("batch_size", _C["batch_size"] < 1, "batch size {batch_size}", "give 1 or more, or leave it empty"),
    Rule(
        "stages",
        (_C["stages"] != "") & ~_C["stages"].str.contains(r"^[^:=|\s]+:[1-9]\d*(?:\|[^:=|\s]+:[1-9]\d*)*$"),
        "{stages!r} says no number of stages per GPU type",
        "TYPE:STAGES joined by |, for instance dgx:2|rtx:8",
    ),
    Rule(
        "reserved",
        (_C["reserved"] != "") & ~_C["reserved"].str.contains(r"^[^:=|\s]+:[1-9]\d*$"),
        "{reserved!r} is no reservation",
        "TYPE:GPUS, for instance dgx:8",
    ),
    Rule(
        "options",
        (_C["options"] != "") & ~_C["options"].str.contains(OPTIONS_PATTERN),
        "{options!r} is not a list of alternatives",
        "type:gpus[@nodes][/cpus][/memory][/storage]=seconds joined by |, for instance v100:4=3600|cpu:0/20=9000",
    ),
)


def missing_columns(frame: pl.DataFrame) -> Iterator[Finding]:
    """A finding for each required column that is not there, with the likely reason."""
    for name in REQUIRED:
        if name in frame.columns:
            continue
        alias = next((found for found in frame.columns if alias_of(found) == name), None)
        if alias is not None:
            fix = f"rename '{alias}' to '{name}': {REPAIR}"
        elif not any(found in COLUMNS or alias_of(found) for found in frame.columns):
            fix = "the first line must name the columns: " + ",".join(REQUIRED)
        else:
            fix = near(name, frame.columns)
        repairable = alias is not None or name == "job"
        yield Finding(name, f"column '{name}' is missing", fix, repairable)


def contradictions(frame: pl.DataFrame) -> list[Finding]:
    """What the rules find in a typed frame, in the order of the rules, plus identities used twice."""
    assumed, rules, bad = _questions_to(frozenset(COLUMNS.keys() & frame.columns))
    present = frame.with_columns(assumed)
    masks = present.select(bad)
    findings = []
    for rule, mask in zip(rules, masks):
        if mask.any():
            extra = [pl.col("arrival").shift(1).alias("_before")] if rule.field == "arrival" else []
            cells = present.with_columns(extra).filter(mask)
            rows = tuple(mask.arg_true().to_list())
            findings.append(Finding(rule.field, rule.what, rule.fix, rule.repairable, rows, cells))
    return [*findings, *_no_curves(frame), *_repeated(frame)]


@lru_cache(maxsize=64)
def _questions_to(columns: frozenset[str]) -> tuple[list[pl.Expr], list[Rule], list[pl.Expr]]:
    """What is assumed of the columns that are missing, the rules that can be asked then, and their conditions.

    A sweep reads thousands of small traces with the same columns, where to build these takes longer than to ask them.
    """
    assumed = {"options": pl.lit(""), "cpus": pl.lit(None, dtype=pl.Float64)}
    rules = [rule for rule in RULES if rule.needs <= columns | assumed.keys()]
    bad = [rule.bad.fill_null(False).alias(str(i)) for i, rule in enumerate(rules)]
    return [value.alias(name) for name, value in assumed.items() if name not in columns], rules, bad


def _no_curves(frame: pl.DataFrame) -> Iterator[Finding]:
    """Cells of `loss` that are no curve; each is read once, however many jobs share it."""
    if "loss" not in frame.columns:
        return
    for cell in frame["loss"].unique(maintain_order=True).drop_nulls().to_list():
        if cell == "":
            continue
        try:
            losses_of(cell, np.zeros(1))
        except UsageError as error:
            rows = (frame["loss"] == cell).fill_null(False).arg_true().to_list()
            yield Finding("loss", error.what, error.fix, False, tuple(rows))


def _repeated(frame: pl.DataFrame) -> Iterator[Finding]:
    if "job" not in frame.columns or frame["job"].n_unique() == frame.height:
        return
    again = ~frame["job"].is_first_distinct() & frame["job"].is_not_null()
    exact = again & ~frame.select(pl.struct(pl.all()).is_first_distinct()).to_series()
    kinds = (
        (exact, "the whole row repeats an earlier one", f"drop it: {REPAIR}", True),
        (again & ~exact, "id {job!r} is used by an earlier row", "give each job its own id", False),
    )
    for mask, what, fix, repairable in kinds:
        if mask.any():
            yield Finding("job", what, fix, repairable, tuple(mask.arg_true().to_list()), frame.filter(mask))
