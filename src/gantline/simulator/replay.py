"""Recorded runs: every decision of a run as a line of JSON, and folding them through the policy again.

The first line says what was run, each further one holds the snapshot of a decision and the plan that followed. A replay rebuilds the
policy, carries its memory from plan to plan as the engine did, and demands the recorded plans. Turns that the policy lost are not in
the record: then as now, the last valid plan stands.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gantline.core import memory as memories
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.policy import Policy
from gantline.core.snapshot_json import decode_snapshot, encode_plan
from gantline.simulator.run import Run

VERSION = 1


@dataclass(frozen=True)
class Difference:
    """Where a replay first gave another plan."""

    decision: int
    time: float
    path: str
    recorded: str
    replayed: str

    def __str__(self) -> str:
        return f"decision {self.decision} at {self.time:g} s, {self.path}: recorded {self.recorded}, replayed {self.replayed}"


@dataclass(frozen=True)
class Replayed:
    """How far a replay came."""

    decisions: int
    difference: Difference | None = None


@dataclass(frozen=True)
class Record:
    """A recorded run: what was run, and its decisions as they are read."""

    about: Mapping[str, Any]
    decisions: Iterator[tuple[dict[str, Any], dict[str, Any]]]

    @property
    def settings(self) -> dict[str, Any]:
        """The parameters of the policy."""
        found: dict[str, Any] = memories.restore(self.about.get("settings", {}))
        return found


def record_lines(run: Run, policy: str) -> Iterator[str]:
    """The lines of a record; `policy` is the name (or file) by which it can be found again."""
    told = {key: run.summary[key] for key in ("cluster", "seed", "regime", "round", "trace", "trace_hash", "log_hash")}
    settings = memories.plain(dict(run.summary["settings"]))
    head = {"kind": "record", "version": VERSION, "gantline": run.summary["version"], "policy": policy, "settings": settings, **told}
    yield _line({**head, "decisions": len(run.decisions)})
    for snapshot, plan in run.decisions:
        yield _line({"snapshot": snapshot, "plan": plan})


def read_record(path: Path) -> Record:
    """Open a record; its decisions are read one by one."""
    lines = _lines(path)
    about = next(lines, None)
    if about is None:
        raise UsageError("is empty", where=str(path), fix="write one with gantline simulate --record")
    if about.get("kind") != "record" or not isinstance(about.get("version"), int):
        raise UsageError("is not a record of a run", where=f"{path}:1", fix="write one with gantline simulate --record")
    if about["version"] > VERSION:
        raise RefusedError(
            f"was written by a newer Gantline (version {about['version']} of records)", where=str(path), fix="upgrade gantline"
        )
    return Record(about, _decisions(lines, str(path), about.get("decisions")))


def replay(record: Record, policy: Policy, performance: Any = None) -> Replayed:
    """Fold a record through a policy, up to the first plan that is not the recorded one."""
    count, memory = 0, None
    for stored, expected in record.decisions:
        if count == 0:
            memory = stored.get("memory")
        if memory != stored.get("memory"):
            return Replayed(count, _difference(stored, "memory", stored.get("memory"), memory))
        found = json.loads(json.dumps(encode_plan(policy.decide(decode_snapshot(stored, performance)))))
        parted = first_difference(expected, found, "plan")
        if parted is not None:
            return Replayed(count, _difference(stored, *parted))
        memory = found.get("memory")
        count += 1
    return Replayed(count)


def first_difference(ours: Any, theirs: Any, path: str) -> tuple[str, Any, Any] | None:
    """The first place at which two JSON values differ, with both values there."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in [*ours, *(key for key in theirs if key not in ours)]:
            found = first_difference(ours.get(key), theirs.get(key), f"{path}.{key}")
            if found is not None:
                return found
        return None
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (a, b) in enumerate(zip(ours, theirs)):
            found = first_difference(a, b, f"{path}[{place}]")
            if found is not None:
                return found
        return None
    return None if ours == theirs else (path, ours, theirs)


def _difference(stored: dict[str, Any], path: str, recorded: Any, replayed: Any) -> Difference:
    return Difference(stored["decision"], float(stored["now"]), path, _short(recorded), _short(replayed))


def _short(value: Any) -> str:
    text = "nothing" if value is None else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, which may be compressed."""
    if not path.is_file():
        raise NotFoundError("no such file", where=str(path))
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.name.endswith(".gz") else path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                found = json.loads(line)
                if not isinstance(found, dict):
                    raise UsageError("is not a JSON object", where=f"{path}:{number}")
                yield found
    except (EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read after line {number}: {error}", where=str(path), fix="was the file cut short?") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"is not JSON: {error.msg}", where=f"{path}:{number}", fix="was the file cut short?") from None


def _decisions(lines: Iterator[dict[str, Any]], path: str, promised: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    count = 0
    for line in lines:
        count += 1
        if not isinstance(line.get("snapshot"), dict) or not isinstance(line.get("plan"), dict):
            raise UsageError("holds no snapshot and plan", where=f"{path}:{count + 1}")
        yield line["snapshot"], line["plan"]
    if isinstance(promised, int) and count != promised:
        raise UsageError(f"has {count} decisions, its first line promises {promised}", where=path, fix="was the file cut short?")
