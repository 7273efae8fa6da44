"""Slurm's accounting (``sacct --parsable2`` or ``--parsable``), and how Slurm writes durations and resources.

Needed columns: JobID (or JobIDRaw), Submit, a run time (ElapsedRaw, Elapsed, or Start and End), and GPUs: AllocTRES,
ReqTRES, AllocGRES or ReqGRES. A good call: ``sacct -a -P -X -S 2024-01-01 -o
JobID,User,Account,Partition,Submit,Start,Elapsed,Timelimit,State,AllocTRES,ReqTRES,Priority``. Steps (``123.batch``)
and array members that were never split off (``123_[5-9]``) are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import polars as pl

from gantline.traces.importers.table import Sieve, columns_of, date_of, moment, number, outcomes, read_foreign, text
from gantline.traces.read import RawTable
from gantline.traces.trace import Trace

_NO_LIMIT = ("", "unlimited", "partition_limit", "invalid")
_CLOCK = re.compile(r"\d{1,9}(?::\d{1,9}){0,2}(?:\.\d+)?")
_TYPED = re.compile(r"gres/gpu:([\w.\-]+)[=:](\d+)")
_PLAIN = re.compile(r"gres/gpu[=:](\d+)")
_OLD = re.compile(r"(?:^|,|gres:)gpu(?::([A-Za-z][\w.\-]*|[\w.\-]+(?=:\d)))?(?::(\d+))?(?=,|\(|$)")
_MEMORY = re.compile(r"(?:^|,)mem=([\d.]+)([KMGTP]?)")
_UNITS = {"": 2**20, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40, "P": 2**50}


def seconds_of(text: str) -> float | None:
    """Seconds of ``[days-]hours:minutes:seconds``, ``minutes:seconds`` or ``minutes``; None for no limit."""
    if text.strip().lower() in _NO_LIMIT:
        return None
    days, dash, rest = text.strip().rpartition("-")
    if not _CLOCK.fullmatch(rest) or (dash and not re.fullmatch(r"\d{1,9}", days)):
        raise ValueError(text)
    parts = [float(part) for part in rest.split(":")]
    if dash:  # with days the first number is hours
        hours, minutes, seconds = (*parts, 0.0, 0.0)[:3]
    else:
        hours, minutes, seconds = (0.0, parts[0], 0.0) if len(parts) == 1 else ((0.0, *parts)[-3:])
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def gpus_of(text: str) -> float:
    """GPUs named by a TRES or GRES text; typed entries repeat the plain total, so the total wins."""
    plain = _PLAIN.search(text)
    if plain:
        return float(plain.group(1))
    typed = sum(float(count) for _, count in _TYPED.findall(text))
    if typed or "gres/" in text:
        return typed
    return sum(float(count or 1) for _, count in _OLD.findall(text))


def type_of(text: str) -> str:
    """The GPU type that a TRES or GRES text names, if it names exactly one."""
    kinds = {kind for kind, _ in _TYPED.findall(text)} or {kind for kind, _ in _OLD.findall(text) if kind}
    return kinds.pop() if len(kinds) == 1 else ""


def memory_of(text: str) -> float | None:
    """Gigabytes of the ``mem=`` entry of a TRES text; a number without a unit is in mebibytes."""
    found = _MEMORY.search(text)
    return float(found.group(1)) * _UNITS[found.group(2)] / 1e9 if found else None


_CALL = "print it with sacct -aXP -o JobID,User,Partition,Submit,Start,Elapsed,State,AllocTRES"
_RESOURCES = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
_OUTCOMES = {
    "COMPLETED": "completed", "CANCELLED": "killed", "PREEMPTED": "killed", "REQUEUED": "killed", "FAILED": "failed", "TIMEOUT": "failed",
    "NODE_FAIL": "failed", "OUT_OF_MEMORY": "failed", "BOOT_FAIL": "failed", "DEADLINE": "failed",
}  # fmt: skip


def read(
    src: Path,
    *,
    cpu_jobs: Annotated[bool, "keep the jobs that ask for CPUs only"] = False,
) -> Trace:
    """The finished jobs of the accounting, in the order of submission; the queue is the partition."""
    raw = read_foreign(src, (), separator="|", quote=False)
    if "JobIDRaw" in raw.frame.columns and "JobID" not in raw.frame.columns:
        raw = replace(raw, frame=raw.frame.rename({"JobIDRaw": "JobID"}))
    here = raw.frame.columns
    for name in ("JobID", "Submit"):
        if name not in here:
            raise raw.error(f"column '{name}' is missing", field=name, fix=_CALL)
    resources = [name for name in _RESOURCES if name in here]
    if not resources:
        raise raw.error("no column holds the GPUs", fix="add AllocTRES to sacct -o")
    nodes = number(raw, "NNodes") if "NNodes" in here else pl.Series([1.0] * len(raw.frame))
    state = text(raw, "State").str.extract(r"^(\w+)").fill_null("")
    columns = {
        "job": text(raw, "JobID"),
        "arrival": moment(raw, "Submit"),
        "gpus": _first_known(raw, resources, nodes),
        "duration": _run_time(raw),
        "type": _types(raw, resources),
        "outcome": outcomes(state, _OUTCOMES),
        "_state": state,
    }
    columns |= columns_of(raw, {"user": "User", "queue": "Partition", "app": "JobName", "priority": "Priority"}, optional=True)
    columns |= {"time_limit": _each(raw, "Timelimit")} if "Timelimit" in here else {}
    columns |= _cpus_and_memory(raw, resources)
    columns |= {"started": moment(raw, "Start")} if "Start" in here else {}
    columns |= {"attempts": number(raw, "Restarts") + 1} if "Restarts" in here else {}
    sieve = Sieve(pl.DataFrame(columns), raw)
    sieve.frame = sieve.frame.filter(~pl.col("job").str.contains(".", literal=True))
    sieve.total = len(sieve.frame)
    if sieve.total < len(raw.frame):
        sieve.note(f"left out {len(raw.frame) - sieve.total} steps of jobs (sacct -X leaves them out itself)")
    parts = sieve.frame.filter(pl.col("job").str.contains(r"^\d+\+\d+$"))
    if parts.height:
        jobs = parts["job"].str.extract(r"^(\d+)").n_unique()
        sieve.note(f"{jobs} heterogeneous jobs have {parts.height} parts (7+0, 7+1, ...), each a job of its own here: they may run apart")
    sieve.drop(pl.col("job").str.contains("[", literal=True), "array members that never started")
    sieve.drop(pl.col("arrival").is_null(), "no time of submission")
    sieve.drop(pl.col("_state").is_in(["PENDING", "RUNNING", "SUSPENDED", "RESIZING"]), "not finished")
    sieve.drop_unusable(cpu_jobs, idle="never ran (no elapsed time)")
    sieve.note_start(lambda first: f"{date_of(first)}, the cluster's local time")
    return sieve.finish(from_zero=True)


def _each(raw: RawTable, name: str) -> pl.Series:
    """A column of Slurm durations such as ``1-02:03:04`` in seconds; words such as UNLIMITED are null."""
    cells = text(raw, name)
    try:
        return _by_text(cells, seconds_of, pl.Float64)
    except ValueError as error:
        row = int((cells == str(error)).arg_true()[0])
        what = f"{str(error)[:60]!r} is not a duration"
        raise raw.error(what, row=row, field=name, fix="such as 1-02:03:04") from error


def _by_text(cells: pl.Series, meaning: Callable[[str], object], dtype: type[pl.DataType]) -> pl.Series:
    """What each cell means, worked out once per different text: a million jobs ask for few different things."""
    known = {cell: meaning(cell) for cell in cells.unique()}
    return cells.replace_strict(list(known), pl.Series(known.values(), dtype=dtype, strict=False))


def _run_time(raw: RawTable) -> pl.Series:
    if "ElapsedRaw" in raw.frame.columns:
        return number(raw, "ElapsedRaw")
    if "Elapsed" in raw.frame.columns:
        return _each(raw, "Elapsed")
    if {"Start", "End"} <= set(raw.frame.columns):
        return moment(raw, "End") - moment(raw, "Start")
    raise raw.error("no column holds the run time", field="Elapsed", fix="add Elapsed to sacct -o")


def _first_known(raw: RawTable, resources: list[str], nodes: pl.Series) -> pl.Series:
    """GPUs of the whole job, from the first column that has any; the older GRES columns count per node."""
    found = []
    for name in resources:
        size = _by_text(text(raw, name), gpus_of, pl.Float64)
        found.append(size * nodes.fill_null(1.0) if name.endswith("GRES") else size)
    return pl.select(pl.coalesce([size.replace(0.0, None) for size in found]).fill_null(0.0)).to_series()


def _types(raw: RawTable, resources: list[str]) -> pl.Series:
    found = [_by_text(text(raw, name), type_of, pl.String).replace("", None) for name in resources]
    return pl.select(pl.coalesce(found).fill_null("")).to_series()


def _cpus_and_memory(raw: RawTable, resources: list[str]) -> dict[str, pl.Series]:
    tres = next((name for name in resources if name.endswith("TRES")), None)
    if tres is None:
        return {"cpus": number(raw, "AllocCPUS")} if "AllocCPUS" in raw.frame.columns else {}
    cells = text(raw, tres)
    cpus = cells.str.extract(r"(?:^|,)cpu=(\d+)").cast(pl.Float64)
    return {"cpus": cpus, "memory": _by_text(cells, memory_of, pl.Float64)}
