"""The folder of stored code: files are written atomically, by one process at a time, and deleted when unused for long."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

#: the sources that define how code is made and called
_RECIPE = ("compiler.py", "object_code.py", "slots.py")
_PATIENCE = 300.0  # seconds to wait for another process that compiles the same
_DAY = 86400.0
_KEPT_DAYS = 60


def kernel_folder() -> Path:
    """The folder of compiled kernels: `NUMBA_CACHE_DIR`, or the user's cache."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gantline" / "kernels"


@cache
def machine() -> str:
    """What stored code depends on besides its source."""
    digest = hashlib.blake2b(digest_size=8)
    for name in _RECIPE:
        digest.update(Path(__file__).with_name(name).read_bytes())
    features = llvm.get_host_cpu_features().flatten()
    versions = f"{version('numba')}|{llvm.llvm_version_info}|{np.__version__}|{sys.implementation.cache_tag}"
    return f"{llvm.get_process_triple()}|{llvm.get_host_cpu_name()}|{features}|{versions}|{digest.hexdigest()}"


def name_of(name: str, content: str) -> str:
    """A name for something with that content, on this kind of machine."""
    digest = hashlib.blake2b(f"{machine()}|{content}".encode(), digest_size=12).hexdigest()
    return f"{name.replace('<', '').replace('>', '')[-100:]}-{digest}"


def file_of(name: str, ending: str) -> Path:
    """The file in which that is stored."""
    return kernel_folder() / f"{name}.{ending}"


def read_file(path: Path) -> bytes | None:
    """What is stored there, unless it is damaged; None: nothing."""
    try:
        check, _, content = path.read_bytes().partition(b"\n")
        if check != _check(content):
            return None
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)  # it is needed
    except OSError:
        return None
    return content


def write_file(path: Path, content: bytes) -> bool:
    """Store it, whole or not at all; whether that was possible."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _tidy(path.parent)
        draft.write_bytes(_check(content) + b"\n" + content)
        draft.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        return False
    return True


def _check(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16).hexdigest().encode()


@cache
def _tidy(folder: Path) -> None:
    """Delete files that were not used for long, once per process that writes."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if path.suffix in (".o", ".bc", ".nbc", ".part", ".lock") and time.time() - path.stat().st_mtime > _KEPT_DAYS * _DAY:
                path.unlink()


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Let one process at a time make this file; others wait for it. Best effort: without file locks every process makes its own."""
    lock = path.with_suffix(".lock")
    try:
        import fcntl

        lock.parent.mkdir(parents=True, exist_ok=True)
        file = lock.open("ab")
    except (ImportError, OSError):
        yield
        return
    with file:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                lock.unlink(missing_ok=True)
                fcntl.flock(file, fcntl.LOCK_UN)  # closing it would not do if another thread has started a process meanwhile
