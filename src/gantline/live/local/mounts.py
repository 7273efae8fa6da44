"""Private mounts of a process, in which some files cannot be opened. Keepers import this."""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN_MOUNTS, _BIND, _RECURSIVE, _SLAVE = 0x20000, 4096, 16384, 1 << 19


def cover(paths: Sequence[str], lid: str) -> None:
    """From now on this process and its children find the file `lid` in place of each of these; other processes see no change.

    Mounts that are made elsewhere later are seen here as well, not the other way round.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_OWN_MOUNTS))
    _check(libc.mount(None, b"/", None, _RECURSIVE | _SLAVE, None))
    for path in paths:
        _check(libc.mount(os.fsencode(lid), os.fsencode(path), None, _BIND, None))


def _check(failed: int) -> None:
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
