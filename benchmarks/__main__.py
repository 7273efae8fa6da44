"""``python -m benchmarks NAME``: one benchmark; without a name all of them, one after the other, each in a process of its own."""

from __future__ import annotations

import resource
import runpy
import subprocess
import sys
from pathlib import Path

NAMES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if not path.stem.startswith("_"))


def run_all() -> int:
    """The whole table, with the machine and the CPU seconds that each part took; how many parts failed comes back."""
    from benchmarks._measure import machine

    print(f"# {machine()}", flush=True)
    failed = []
    for name in NAMES:
        print(f"\n== {name}", flush=True)
        before = _cpu_seconds()
        if subprocess.run([sys.executable, "-m", "benchmarks", name], check=False).returncode:
            failed.append(name)
        print(f"== {name}: {_cpu_seconds() - before:.1f} CPU seconds in all, compiling included", flush=True)
    print(f"\nfailed: {', '.join(failed)}" if failed else f"\nall {len(NAMES)} benchmarks have run")
    return len(failed)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if len(sys.argv) == 1:
    sys.exit(run_all())
name = sys.argv[1]
if name not in NAMES:
    sys.exit(f"no benchmark '{name}' (known: {', '.join(NAMES)})")
sys.argv = [name, *sys.argv[2:]]
runpy.run_module(f"benchmarks.{name}", run_name="__main__")
