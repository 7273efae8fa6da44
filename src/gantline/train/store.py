"""Checkpoints on disk: each is a folder that appears under its name when everything in it is safely written, never before.

::

    FOLDER/000000000120.3/model       what the job's own function wrote: a file or a folder
    FOLDER/000000000120.3/state.json  where the job was: step, epoch, position, batch

The name is the step and the incarnation that wrote it. The newest two are kept, so that the one being read is never removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

_NAME = re.compile(r"(\d{12,})\.(\d+)")
_KEPT = 2
MODEL = "model"


class CheckpointError(Exception):
    """A checkpoint could not be written or read; the one before it is untouched."""


class Checkpoints:
    """The checkpoints of one job."""

    def __init__(self, folder: Path, epoch: int) -> None:
        self.folder, self._epoch = folder, epoch

    def newest(self) -> Path | None:
        """The checkpoint that a restart resumes from."""
        found = self._all()
        return found[-1] if found else None

    def state(self) -> dict[str, Any]:
        """Where the job was at its newest checkpoint; empty if there is none."""
        newest = self.newest()
        if newest is None:
            return {}
        try:
            body = json.loads((newest / "state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{newest} cannot be read: {error}; remove that folder to resume from the one before") from error
        if not isinstance(body, dict):
            raise CheckpointError(f"{newest / 'state.json'} holds no state; remove that folder to resume from the one before")
        return body

    def write(self, step: int, state: Mapping[str, Any], save: Callable[[Path], object] | None) -> Path:
        """Write a checkpoint and give it its name; an error leaves the earlier ones as they were."""
        final = self.folder / f"{step:012d}.{self._epoch}"
        with self._draft(step, state, save) as draft:
            _sync_all(draft)
            if not final.exists():  # else this incarnation has saved this very step before
                draft.rename(final)
                _sync(self.folder)
        self._clear()
        return final

    def rehearse(self, step: int, state: Mapping[str, Any], save: Callable[[Path], object] | None) -> None:
        """Write a checkpoint and throw it away: a save that cannot work is known before hours of work depend on it."""
        with self._draft(step, state, save):
            pass

    @contextlib.contextmanager
    def _draft(self, step: int, state: Mapping[str, Any], save: Callable[[Path], object] | None) -> Iterator[Path]:
        """All of a checkpoint in a folder that is gone afterwards, unless it was given its name."""
        draft = self.folder / f".draft-{self._epoch}-{os.getpid()}"
        try:
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            if save is not None:
                save(draft / MODEL)
                if not (draft / MODEL).exists():
                    raise CheckpointError("the save function wrote nothing to the path that it was given")
            (draft / "state.json").write_text(json.dumps(dict(state)), encoding="utf-8")
            yield draft
        except OSError as error:
            raise CheckpointError(f"no checkpoint at step {step}: {error}") from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _all(self) -> list[Path]:
        """All whole checkpoints, the oldest first."""
        if not self.folder.is_dir():
            return []
        named = [(match, path) for path in self.folder.iterdir() if (match := _NAME.fullmatch(path.name)) and path.is_dir()]
        return [path for _, path in sorted(named, key=lambda pair: (int(pair[0][1]), int(pair[0][2])))]

    def _clear(self) -> None:
        """Remove what will not be resumed from: older checkpoints, and drafts of incarnations before this one."""
        for path in self._all()[:-_KEPT]:
            shutil.rmtree(path, ignore_errors=True)
        for path in self.folder.glob(".draft-*-*"):
            if path.name.split("-")[1].isdigit() and int(path.name.split("-")[1]) < self._epoch:
                shutil.rmtree(path, ignore_errors=True)


def _sync_all(folder: Path) -> None:
    """Make files and folders durable, the innermost first."""
    for root, _, files in os.walk(folder, topdown=False):
        for name in files:
            _sync(Path(root) / name)
        _sync(Path(root))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
