"""Write `tests/settled.txt`: the kernels that need not be compiled again while they stay as they are. `make settled` runs it.

The suite runs twice: with every kernel compiled in an empty folder, which it must pass, and with every kernel as Python. A kernel that
takes less time as Python, in all tests together, than three quarters of what it takes to be compiled is named.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.settled import Settled, write_settled

from gantline._machine_code import Kernel

ROOT = Path(__file__).parents[1]
SHARE = 0.75  # of the seconds of compiling that a kernel may take as Python
HEAD = """\
# Kernels that run as Python at every change because their machine code passed all tests as they are now: `make settled` writes this.
# Per line a kernel, its fingerprint and the types of arguments that it was called with. See tests/settled.py.
"""


@dataclass
class Suite:
    """How a run of the suite ended; by kernel its seconds, and the types of its arguments."""

    code: int
    seconds: Counter[str] = field(default_factory=Counter)
    types: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def run(folder: Path, how: str, *words: str) -> Suite:
    """The whole suite, with kernels run that way."""
    target = folder / how
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / ".ci"),
        "NUMBA_CACHE_DIR": str(folder / "kernels"),
        "GANTLINE_KERNEL_SECONDS": str(target),
        "GANTLINE_KERNELS": how,
    }
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "worksteal", "--ignore=tests/system", "-p", "kernel_seconds", *words]
    command += ["--deselect", "tests/project/test_settled.py::test_the_list_names_kernels_that_there_are"]  # it is about to be written
    found = Suite(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode)
    for file in folder.glob(f"{how}-*.json"):
        told = json.loads(file.read_text(encoding="utf-8"))
        found.seconds.update(told["seconds"])
        for name, types in told["types"].items():
            found.types[name] |= set(types)
    return found


def fingerprints(names: Iterable[str]) -> dict[str, str]:
    """Of these kernels; those of tests and of scripts have none."""
    for module in {name.rpartition(".")[0] for name in names if name.startswith("gantline.")}:
        importlib.import_module(module)
    return {one.full_name: one.fingerprint for one in gc.get_objects() if isinstance(one, Kernel) and one.fingerprint}


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="settle-") as name:
        compiled = run(Path(name), "compiled", "--compiled")
        if compiled.code:
            print("not written: the tests did not pass with every kernel compiled", file=sys.stderr)
            return 1
        plain = run(Path(name), "plain", "--compiled", "-p", "no:warnings")  # those of times and of loops fail here
    write(compiled.seconds, plain)
    return 0


def write(compiled: Counter[str], plain: Suite) -> None:
    known = fingerprints(compiled)
    chosen = [name for name, spent in compiled.items() if name in known and plain.seconds[name] < SHARE * spent]
    write_settled({name: Settled(known[name], frozenset(plain.types[name])) for name in chosen}, HEAD)
    saved, cost = (sum(of[name] for name in chosen) for of in (compiled, plain.seconds))
    print(f"{len(chosen)} of {len(compiled)} kernels run as Python: {cost:.0f} s in place of {saved:.0f}; {compiled.total():.0f} in all")


if __name__ == "__main__":
    raise SystemExit(main())
