"""What starting costs: `gantline simulate` of 100 jobs, each in a process of its own, with kernels stored or still to be compiled."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._measure import History

from gantline import Trace


def start_table(quick: bool, history: History) -> None:
    """Warm, the least of six, taking turns with the imports of two libraries; cold, once for each family of loops if time may be taken."""
    print("\n# gantline simulate of 100 jobs on 8x4 GPUs, imports and all; CPU seconds")
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.generate("day", jobs=100, gpus=32).save(Path(folder) / "jobs.csv")
        drawn = ("day", "fifo", "--trace-set", "jobs=100", "--trace-set", "gpus=32")
        rounds = [(_seconds(str(trace), "fifo"), _seconds(*drawn), _cpu_of(["-c", "import numpy, polars"])) for _ in range(6)]
        table, made, imports = (min(column) for column in zip(*rounds, strict=True))
        print(f"warm, fifo, a CSV file: {table:6.2f} s  {'' if quick else history.add('start warm', table)}")
        print(f"warm, fifo, generated:  {made:6.2f} s  {'' if quick else history.add('start warm generated', made)}")
        print(f"NumPy and polars alone: {imports:6.2f} s  {'' if quick else history.add('start imports', imports)}", flush=True)
        for policy, *more in () if quick else (("fifo",), ("srtf",), ("fifo", "--set", "backfill=easy"), ("allox",)):
            with tempfile.TemporaryDirectory() as kernels:
                cold, name = _seconds(str(trace), policy, *more, NUMBA_CACHE_DIR=kernels), " ".join([policy, *more[1:]])
            print(f"cold, {name}: {cold:6.2f} s  {history.add(f'start cold {name}', cold)}", flush=True)


def _seconds(trace: str, policy: str, *more: str, **environment: str) -> float:
    return _cpu_of(["-m", "gantline", "simulate", trace, "--cluster", "8x4", "--policy", policy, *more], **environment)


def _keeping_bytecode() -> dict[str, str]:
    """The environment in which Python stores the bytecode of modules, as it does for users: reading sources takes longer than the rest."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _cpu_of(arguments: list[str], **environment: str) -> float:
    """CPU seconds of Python with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=_keeping_bytecode() | environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
