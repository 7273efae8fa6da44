"""Where compiled kernels are kept: a folder of the user's cache, named after the sources they were compiled from.

Numba notices a change in the file of a kernel, but not in the files of the kernels it calls, so a shared folder could serve stale
code after an upgrade or an edit. Naming the folder after all sources rules that out, and works where the package itself is read-only.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_PACKAGES = ("core", "performance", "solvers", "placement", "policies", "engine", "drivers", "imitations", "simulator", "report")
#: how a file shows that it holds kernels, or constants that are compiled into them
_MARKS = (b"\n@kernel", b"\n@compiled", b"\n@njit", b": Final = ")
_CONSTANTS = ("phases.py", "reasons.py", "jit.py")


def use_kernel_cache() -> None:
    """Point Numba to the folder, unless the user has chosen one."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    root = Path(__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for package in _PACKAGES:
        for source in sorted((root / package).rglob("*.py")):
            text = source.read_bytes()
            if source.name in _CONSTANTS or any(mark in text for mark in _MARKS):
                digest.update(text)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ["NUMBA_CACHE_DIR"] = str(home / "gantline" / f"kernels-{digest.hexdigest()}")
