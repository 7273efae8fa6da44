"""Hashes of content: of a value, whatever order its keys have, and of a file."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from gantline.core.errors import NotFoundError, UsageError

_BLOCK = 1 << 20
DECIDING = ("core", "models", "policies", "traces", "engine", "simulator", "systems", "registry.py", "lab/report/metrics")


def canonical_text(value: Any) -> str:
    """One text for equal values: keys sorted, 300 and 300.0 alike, nothing that JSON cannot hold."""
    return json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def value_digest(value: Any) -> str:
    """The SHA-256 of a value."""
    return hashlib.sha256(canonical_text(value).encode()).hexdigest()


def file_digest(path: str | Path) -> str:
    """The SHA-256 of a file, or of the files of a folder with their names."""
    file = Path(path)
    if file.is_dir():
        parts = {str(item.relative_to(file)): file_digest(item) for item in sorted(file.rglob("*")) if item.is_file()}
        return value_digest(parts)
    try:
        known = file.stat()
        return _read_digest(str(file.resolve()), known.st_size, known.st_mtime_ns)
    except FileNotFoundError:
        raise NotFoundError("no such file", where=str(file), fix="check the path") from None
    except OSError as error:
        raise UsageError(f"cannot be read: {os.strerror(error.errno or 0)}", where=str(file)) from None


@lru_cache(maxsize=1)
def program_digest() -> str:
    """The SHA-256 of the sources that decide what a run finds; another program may find something else."""
    home = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for room in DECIDING:
        for file in sorted((home / room).rglob("*.py")) or [home / room]:
            if "studies" in file.relative_to(home).parts:
                continue  # they define which runs are made and how they are read, not the result of a run
            digest.update(f"{file.relative_to(home)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _read_digest(path: str, size: int, changed: int) -> str:
    """Read a file of this size and time of change; hundreds of settings share one trace."""
    digest = hashlib.sha256()
    with open(path, "rb") as handle:
        while block := handle.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _canonical(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_canonical(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        number = float(value)
        return int(number) if math.isfinite(number) and number == int(number) else repr(number)
    return str(value)
