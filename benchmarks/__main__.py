"""``python -m benchmarks NAME``: one benchmark; without a name all of them, one after the other, each in a process of its own.

``python -m benchmarks --long``: all of them, and then rows that take minutes each. A part that takes half an hour has failed.
"""

from __future__ import annotations

import resource
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: what `--long` adds: parts with other arguments
LONG = (("blocks", "--jobs", "10000000"), ("sweep", "--runs", "100"), ("elastic", "--jobs", "500,2000"))
LIMIT = 1800  # seconds after which a part is ended
NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def run_all(parts: Sequence[tuple[str, ...]]) -> int:
    """The whole table, with the machine and the CPU seconds that each part took; how many parts failed comes back."""
    from benchmarks._measure import machine

    print(f"# {machine()}", flush=True)
    failed = []
    for part in parts:
        name = " ".join(part)
        print(f"\n== {name}", flush=True)
        before = _cpu_seconds()
        try:
            ended = subprocess.run([sys.executable, "-m", "benchmarks", *part], check=False, timeout=LIMIT).returncode == 0
        except subprocess.TimeoutExpired:
            ended = False
        if not ended:
            failed.append(name)
        print(f"== {name}: {_cpu_seconds() - before:.1f} CPU seconds in all, compiling included", flush=True)
    print(f"\nfailed: {', '.join(failed)}" if failed else f"\nall {len(parts)} benchmarks have run")
    return len(failed)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if len(sys.argv) == 1 or sys.argv[1] == "--long":
    sys.exit(run_all([*((name,) for name in NAMES), *(LONG if len(sys.argv) > 1 else ())]))
name = sys.argv[1]
if name not in NAMES:
    sys.exit(f"no benchmark '{name}' (known: {', '.join(NAMES)})")
sys.argv = [name, *sys.argv[2:]]
runpy.run_module(f"benchmarks.{name}", run_name="__main__")
