"""Code of jobs, packed at submission and kept in the home: later changes of the folder change no job, and a package that Ray has dropped
since is brought to it again."""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gantline.core.errors import RefusedError
from gantline.live.jobs.launch import Launch, RuntimeEnv
from gantline.live.runners.local.files import make_private

if TYPE_CHECKING:
    from gantline.live.runners.local.files import Values

_WHERE = "runtime_env.working_dir"
_NEVER = (".git", ".venv", "venv", "__pycache__")  # of a folder: no code of the job
_KEPT = 3600.0  # seconds that a package is kept though no job names it: one may just be submitted with it
_OURS = "gcs://"
_MB = 2**20


class Packages:
    """The packages of one home. `pack` may be called from any thread, all else from one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._next = folder, 0.0

    def pack(self, environment: RuntimeEnv) -> RuntimeEnv:
        """The environment as Ray takes it for an actor: folders and files of this machine are in it by their contents."""
        from ray._private.utils import parse_runtime_env_for_task_or_actor

        found = {name: value for name, value in environment.items() if name != "excludes"}
        place, excludes = str(found.get("working_dir", _OURS)), environment.get("excludes", ())
        try:
            if "://" not in place:
                found["working_dir"] = self._keep(Path(place), excludes if isinstance(excludes, Sequence) else ())
            return dict(parse_runtime_env_for_task_or_actor(found) or {})
        except (OSError, TypeError, ValueError) as error:
            why = next(iter(str(error).splitlines()), "Ray refuses it")
            raise RefusedError(why, where="runtime_env", fix="docs/ray.md has what Ray takes") from None

    def bring(self, environment: RuntimeEnv) -> None:
        """Let Ray have the package that the environment names, for as long as an actor takes to begin, and from then on while it is there.
        FileNotFoundError: it is nowhere."""
        from ray._private.runtime_env.packaging import package_exists, pin_runtime_env_uri, upload_package_to_gcs

        uri = str(environment.get("working_dir", ""))
        if uri.startswith(_OURS):
            pin_runtime_env_uri(uri)
            if not package_exists(uri):
                upload_package_to_gcs(uri, self._file(uri).read_bytes())

    def tidy_up(self, to_run: Callable[[], Iterable[Launch]]) -> None:
        """Now and then remove what no job needs that may still run."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _KEPT
        needed = {self._file(str(launch.runtime_env.get("working_dir", ""))) for launch in to_run()}
        for file in self.folder.glob("*"):
            with suppress(FileNotFoundError):  # it has just been given its name
                if file not in needed and time.time() - file.stat().st_mtime > _KEPT:
                    file.unlink()

    def _file(self, uri: str) -> Path:
        return self.folder / uri.removeprefix(_OURS)

    def _keep(self, place: Path, excludes: Sequence[str]) -> str:
        """Pack a folder or copy an archive; Ray's name for it."""
        from ray._private.runtime_env.packaging import GCS_STORAGE_MAX_SIZE, create_package, get_uri_for_directory, get_uri_for_package

        is_archive = place.is_file() and place.suffix == ".zip"
        if not is_archive and not place.is_dir():
            fix = "name a folder or a zip file of that machine, or a URI that all nodes can read"
            raise RefusedError(f"the service's machine has no folder or zip file {place}", where=_WHERE, fix=fix)
        if is_archive and excludes:
            raise RefusedError("excludes leaves something out of a folder, and this is an archive", where=_WHERE, fix="leave it out")
        left_out = [*_NEVER, *excludes]
        how = {"include_gitignore": True, "excludes": left_out}
        uri: str = get_uri_for_package(place) if is_archive else get_uri_for_directory(str(place), **how)
        target = self._file(uri)
        if target.exists():
            os.utime(target)
            return uri
        make_private(self.folder)
        part = self.folder / f"{secrets.token_hex(4)}.part"
        try:
            if is_archive:
                shutil.copyfile(place, part)
            else:
                create_package(str(place), part, **how)
            size = part.stat().st_size
            if size >= GCS_STORAGE_MAX_SIZE:
                fix = "leave large files out by excludes or .rayignore, or put them where all nodes can read them"
                what = f"{place} packed has {size / _MB:.0f} MiB, and Ray takes less than {GCS_STORAGE_MAX_SIZE / _MB:.0f} MiB"
                raise RefusedError(what, where=_WHERE, fix=fix)
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
        return uri


def broken(error: Exception) -> Values:
    """What an incarnation is whose environment Ray could not make: it has failed, for a reason that the last line of Ray's words gives."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    why = f"its runtime environment cannot be made: {lines[-1] if lines else type(error).__name__}"
    return {"phase": "over", "cause": "failed", "exit": 126, "why": why}
