"""What a run needs, and what it leaves, as bytes: for machines that share no folder with the sweep."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from gantline.lab.experiment.records import Outcome
from gantline.lab.experiment.running.tasks import Task, perform
from gantline.lab.experiment.setting import Setting, move_setting


def files_of(setting: Setting) -> list[str]:
    """The files and folders that a setting names."""
    found: dict[str, None] = {}

    def note(path: str) -> str:
        found[path] = None
        return path

    move_setting(setting, note)
    return list(found)


def pack(path: Path) -> bytes:
    """A file, or a folder with all that is in it."""
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            archive.add(path, arcname=path.name)
        return buffer.getvalue()


def unpack(archive: bytes, folder: Path) -> None:
    """What was packed, in that folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")


def perform_here(task: Task, paths: Sequence[str], archives: Sequence[bytes]) -> tuple[Outcome, bytes]:
    """Run a task of another machine: with its files, wherever they lie here; the outcome, and an archive with the result."""
    places = {path: str(_unpacked(archive) / Path(path).name) for path, archive in zip(paths, archives)}
    with tempfile.TemporaryDirectory(prefix="gantline-") as folder:
        results = Path(folder) / "runs"
        results.mkdir()
        moved = move_setting(task.setting, places.__getitem__)
        outcome = perform(replace(task, setting=moved, called={here: path for path, here in places.items()}, folder=str(results)))
        return outcome, pack(results)


def take_in(archive: bytes, folder: Path) -> None:
    """The result of a run, in the folder of the sweep: its record last, so that a result that has one is whole."""
    with tempfile.TemporaryDirectory(prefix=".arriving-", dir=folder) as draft:
        unpack(archive, Path(draft))
        for found in sorted((Path(draft) / "runs").iterdir(), key=lambda one: one.suffix == ".json"):
            target = folder / found.name
            if target.is_dir():
                shutil.rmtree(target)
            os.replace(found, target)


@cache
def _shelf() -> tempfile.TemporaryDirectory[str]:
    """Files that runs of this process have in common; gone with it."""
    return tempfile.TemporaryDirectory(prefix="gantline-files-")


def _unpacked(archive: bytes) -> Path:
    """Where it lies: unpacked once, so that what was read of it is found again by the next run."""
    place = Path(_shelf().name) / hashlib.sha256(archive).hexdigest()
    if not place.is_dir():
        unpack(archive, place)
    return place
