"""Recorded runs: a head that says what was run, then its journal; and folding that through engine and policy again.

The head holds the jobs, the cluster, the policy and every option; each further line an input as it was received, or a decision. A replay
builds the run again, hands it the recorded inputs at the times at which they were received (reports of an executor too), and demands the
recorded plans, one by one. Turns that the policy lost are not in the record: then as now, the last valid plan stands.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from gantline.core import memory as memories
from gantline.core.cluster import Cluster
from gantline.core.cluster_spec import decode_cluster, encode_cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.inputs import Input, Report, decode_input
from gantline.core.json_reader import Reader, damaged, loads
from gantline.core.policy import Policy
from gantline.engine.assembly.spec import OPTIONS, RunSpec
from gantline.engine.drivers.executors import ScriptedExecutor
from gantline.engine.drivers.journal import Check, PartedError, PlanDifference, Replayed
from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.python_file import GivenCode, only_given
from gantline.traces.trace import Trace

VERSION = 2
_TYPES = {
    str(kind): kind
    for kind in (
        pl.String(), pl.Boolean(), pl.Null(), pl.Float64(), pl.Float32(), pl.Int64(), pl.Int32(), pl.Int16(), pl.Int8(), pl.UInt64(),
        pl.UInt32(), pl.UInt16(), pl.UInt8(),
    )
}  # fmt: skip


@dataclass(frozen=True)
class RunRecord:
    """A recorded run: what was run, and its journal."""

    about: Mapping[str, Any]
    lines: tuple[dict[str, Any], ...]
    path: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the policy."""
        with damaged(self.path):
            found: dict[str, Any] = dict(memories.restore(self.about.get("settings", {})))
            return found

    @property
    def policy(self) -> str:
        """The policy's name, or the file that it came from."""
        return Reader(self.about, self.path).text("policy")

    @property
    def inputs(self) -> list[tuple[float, int, Input]]:
        """What entered, when it was received, and after how many orders."""
        entered = [line for line in self.lines if "input" in line]
        entries = [{key: line[key] for key in line if key not in ("heard", "after")} for line in entered]
        return [(float(line["heard"]), int(line.get("after", 0)), decode_input(value)) for line, value in zip(entered, entries)]

    @property
    def decisions(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if "decision" in line]


def record_lines(run: Run, policy: str, trace: Trace, cluster: Cluster, spec: RunSpec) -> Iterator[str]:
    """The lines of a record; `policy` is the name (or file) by which it can be found again, `spec` the options as they were given."""
    assert run.journal is not None
    fields = {key: run.summary[key] for key in ("seed", "regime", "round", "trace", "trace_hash", "log_hash")}
    settings = memories.plain(dict(run.summary["settings"]))
    head = {"kind": "record", "version": VERSION, "gantline": run.summary["version"], "policy": policy, "settings": settings, **fields}
    head |= {"cluster": encode_cluster(cluster), "options": _options(spec), "jobs": _columns(trace.frame)}
    yield _line({**head, "decisions": run.journal.decisions, "lines": len(run.journal.lines)})
    yield from map(_line, run.journal.lines)


def _options(spec: RunSpec) -> dict[str, object]:
    """Options not at their default. Changes of nodes and windows are inputs; an executor is replaced by the reports received from it."""
    found = {}
    for name, known in OPTIONS.items():
        value = getattr(spec, name)
        if value == known.default or not _is_recorded(name):
            continue
        if not isinstance(value, (str, int, float, list, tuple)):
            raise RefusedError(f"'{name}' was given as an object, which no file can hold", where="--record", fix="give it by name")
        found[name] = memories.plain(value)
    return found


def _is_recorded(option: str) -> bool:
    return not OPTIONS[option].single and option not in ("node_events", "reserve", "executor")


def _columns(frame: pl.DataFrame) -> dict[str, Any]:
    return {name: {"type": str(frame.schema[name]), "values": memories.plain(frame[name].to_list())} for name in frame.columns}


def read_record(path: Path) -> RunRecord:
    """Read a record; one that was cut short is refused."""
    lines = _lines(path)
    about = next(lines, None)
    if about is None:
        raise UsageError("is empty", where=str(path), fix="write one with gantline simulate --record")
    if about.get("kind") != "record" or not isinstance(about.get("version"), int):
        raise UsageError("is not a record of a run", where=f"{path}:1", fix="write one with gantline simulate --record")
    if about["version"] != VERSION:
        age = "a newer" if about["version"] > VERSION else "an older"
        text = f"was written by {age} Gantline (version {about['version']} of records)"
        raise RefusedError(text, where=str(path), fix="upgrade gantline" if age == "a newer" else "record the run again")
    found = []
    for number, line in enumerate(lines, start=2):
        if not ("input" in line or _is_decision(line)):
            raise UsageError("holds neither an input nor a decision", where=f"{path}:{number}")
        found.append(line)
    if len(found) != about.get("lines", len(found)):
        text = f"has {len(found)} lines, its first line promises {about['lines']}"
        raise UsageError(text, where=str(path), fix="was the file cut short?")
    return RunRecord(about, tuple(found), str(path))


def _is_decision(line: Mapping[str, object]) -> bool:
    number, now = line.get("decision"), line.get("now")
    return (
        isinstance(number, int)
        and isinstance(now, int | float)
        and isinstance(line.get("hash"), str)
        and ("snapshot" in line) == ("plan" in line)
    )


def replay(record: RunRecord, policy: Policy, performance: Any = None, code: GivenCode | None = None) -> Replayed:
    """Fold a record through engine and policy, up to the first plan that is not the recorded one.

    `code`: what the record may name of Python code; no other is loaded.
    """
    about, check = record.about, Check(record.decisions)
    with damaged(record.path, pl.exceptions.PolarsError):
        types = {name: _TYPES[column["type"]] for name, column in about["jobs"].items()}
        values = {name: memories.restore(column["values"]) for name, column in about["jobs"].items()}
        frame, source = pl.DataFrame(values, schema=types), str(about.get("trace", ""))
        trace = Trace(frame, source) if frame.is_empty() else Trace.from_frame(frame, source)  # all jobs may have been submitted
        options = {name: memories.restore(value) for name, value in about["options"].items()}
        recorded = str(about["log_hash"])
        entered = record.inputs
    _check_options(options, record.path)
    reports = [(received, after, value) for received, after, value in entered if isinstance(value, Report)]
    others = [value for _, _, value in entered if not isinstance(value, Report)]
    if reports:
        options["executor"] = ScriptedExecutor(reports)
    if performance is not None:
        options["performance"] = performance
    cluster = decode_cluster(Reader(about, record.path))
    try:
        with only_given(code):
            run = simulate(trace, cluster, policy, record=check, inputs=others, spec=RunSpec.of(options))
    except PartedError as parted:
        return Replayed(check.decisions - 1, parted.difference)
    if check.decisions < len(record.decisions):
        left = record.decisions[check.decisions]
        return Replayed(check.decisions, PlanDifference(left["decision"], left["now"], "decision", "made", "not made"))
    if run.summary["log_hash"] != recorded:
        end = float(run.summary["end"])
        return Replayed(check.decisions, PlanDifference(check.decisions, end, "log", recorded, run.summary["log_hash"]))
    return Replayed(check.decisions)


def _check_options(options: Iterable[str], where: str) -> None:
    """Refuse options that no record has: files to write, and what inputs and reports stand for."""
    for name in options:
        if name in OPTIONS and not _is_recorded(name):
            raise UsageError(f"holds the option '{name}', which no record has", where=where, fix="record the run again")


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, which may be compressed."""
    if not path.is_file():
        raise NotFoundError("no such file", where=str(path))
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.name.endswith(".gz") else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                found = loads(line)
                if not isinstance(found, dict):
                    raise UsageError("is not a JSON object", where=f"{path}:{number}")
                yield found
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read after line {number}: {error}", where=str(path), fix="was the file cut short?") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"is not JSON: {error.msg}", where=f"{path}:{number}", fix="was the file cut short?") from None
