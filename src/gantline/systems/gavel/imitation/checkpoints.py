"""Checkpoints of a long simulation: files that hold all of a run, so that it can be resumed."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gantline.core.errors import NotFoundError, RefusedError, UsageError

FORMAT = "gantline-checkpoint"
VERSION = 1
_HEAD = "head"


def write_checkpoint(path: Path, fits: Mapping[str, Any], head: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write a checkpoint; the file is written atomically. ``fits`` identifies its run."""
    text = json.dumps({"format": FORMAT, "version": VERSION, "fits": dict(fits), **head})
    draft = path.with_name(path.name + ".part")
    with open(draft, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, **{_HEAD: np.array(text), **arrays})
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def read_checkpoint(path: Path, fits: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and arrays of a checkpoint; one of another run is refused with what differs."""
    if not path.is_file():
        raise NotFoundError("no such file", where=f"--resume {path}", fix="name a file that --checkpoint wrote")
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
            head = json.loads(str(arrays.pop(_HEAD)))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise UsageError("is no checkpoint, or a damaged one", where=f"--resume {path}", fix="run again from the start") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT or head.get("version") != VERSION:
        raise RefusedError("was written by another version of Gantline", where=f"--resume {path}", fix="run again from the start")
    written = _Parts(path, _Parts(path, head)["fits"])
    known = json.loads(json.dumps(dict(fits)))
    for what in known | written:
        if written[what] != known.get(what):
            raise RefusedError(
                f"belongs to another run: {what} was {written[what]!r}, now it is {known.get(what)!r}",
                where=f"--resume {path}",
                fix="give the same trace, cluster, policy and options",
            )
    return _Parts(path, head), _Parts(path, arrays)


class _Parts(dict[str, Any]):
    """What a checkpoint holds, by name; a part that is asked for and not there is a damaged file."""

    def __init__(self, path: Path, parts: Mapping[str, Any]) -> None:
        super().__init__(parts)
        self._path = path

    def __missing__(self, name: str) -> Any:
        raise UsageError(f"is damaged: '{name}' is missing", where=f"--resume {self._path}", fix="run again from the start")
