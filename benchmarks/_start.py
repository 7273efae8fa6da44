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
    """Warm, the least of five; cold, once for each family of loops, unless it is to be quick."""
    print("\n# gantline simulate of 100 jobs on 8x4 GPUs, imports and all; CPU seconds")
    with tempfile.TemporaryDirectory() as folder:
        trace = Trace.generate("day", jobs=100, gpus=32).save(Path(folder) / "jobs.csv")
        _seconds(trace, "fifo")
        warm = min(_seconds(trace, "fifo") for _ in range(5))
        print(f"warm, fifo: {warm:6.2f} s  {'' if quick else history.add('start warm', warm)}", flush=True)
        for policy, *more in () if quick else (("fifo",), ("srtf",), ("fifo", "--set", "backfill=easy")):
            with tempfile.TemporaryDirectory() as kernels:
                cold, name = _seconds(trace, policy, *more, NUMBA_CACHE_DIR=kernels), " ".join([policy, *more[1:]])
            print(f"cold, {name}: {cold:6.2f} s  {history.add(f'start cold {name}', cold)}", flush=True)


def _seconds(trace: Path, policy: str, *more: str, **environment: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "gantline", "simulate", str(trace), "--cluster", "8x4", "--policy", policy, *more]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
