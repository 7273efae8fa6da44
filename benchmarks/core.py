"""How fast the kernel is, against a hard-coded C++ loop that only counts GPUs, timed in the same run.

    python -m benchmarks core [--quick] [--only philly|backfill|blox|growth|queue] [--record LABEL]

Prints, per policy: the floor's seconds from a trace in memory to the same figures as our summary, and of its loop
alone; Gantline's with a declared key and first-free placement, the ratio (only where schedules are equal), its loop,
and the ratio of the loops; then consolidated; then with a key in Python: one that is read once, and one that is asked
about all jobs at every decision. Then backfilling, Blox' workloads in rounds per second, and growth: what one more
job costs once a cluster has filled. CPU seconds of one core; `--record` adds them to `history.csv`, and what was
recorded before stands beside every number.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks._growth import grown
from benchmarks._measure import History, machine, timed
from benchmarks._python_keys import UNREAD, WRITTEN
from benchmarks._start import start_table

from gantline import Trace, simulate
from gantline.core.policy import Policy
from gantline.policies.registry import make_policy
from gantline.traces.generators import generate

HERE = Path(__file__).parent
TURNS, QUICK_TURNS = 5, 25  # of the floor and of ours; more where ours take less than a tenth of a second
REFERENCE = Path(os.environ.get("GANTLINE_REFERENCE", HERE.parent.parent / "shared" / "reference"))
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "fifo": ("fifo", {"backfill": "skip"}),
    "srtf": ("srtf", {}),
    "las": ("las", {}),
    "tiresias": ("tiresias", {"limits": (3600.0,), "compat": "none"}),
}


def philly() -> Trace:
    """The real Philly list where it is at hand, else a generated trace of the same size."""
    source = REFERENCE / "pollux" / "philly_jobs.csv.gz"
    if source.exists():
        from gantline.traces.importers import import_trace

        return import_trace("philly-list", source, {})
    return generate("philly", seed=0, jobs=82_247, load=0.73, gpus=512)


def floor_program() -> Path | None:
    """The compiled floor, if this machine has a C++ compiler."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return None
    program = Path(tempfile.mkdtemp()) / "floor"
    subprocess.run([compiler, "-O2", "-o", str(program), str(HERE / "floor.cpp")], check=True)
    return program


def run_floor(program: Path, name: str, trace: Trace, gpus: int, length: float) -> tuple[float, float, list[float]]:
    """Its seconds, those of its loop, and what it tells of the run, see `TOLD`."""
    rows = trace.frame.select("arrival", "gpus", "duration").write_csv(include_header=False, separator=" ")
    command = [str(program), name, str(gpus), str(length)]
    told = subprocess.run(command, input=rows, capture_output=True, text=True, check=True).stdout.split()
    return float(told[0]), float(told[1]), [float(word) for word in told[2:]]


def in_turns(program: Path | None, name: str, trace: Trace, policy: Policy) -> tuple[tuple[float, float, list[float]], float, float, Any]:
    """The floor's best run; our seconds, those of our loop, our summary. In turns, so that what else the machine does falls on both."""
    floors, ours, summary = [], [], {}
    while len(ours) < (QUICK_TURNS if ours and min(ours)[0] < 0.1 else TURNS):
        if program is not None:
            floors.append(run_floor(program, name, trace, 512, 60.0))
        seconds, inside, run = timed(trace, "64x8", policy, 1, round=60, placement="first-free")
        ours.append((seconds, inside))
        summary = run.summary
        del run  # it is not to be freed within the next
    return min(floors, default=(math.nan, math.nan, [])), *min(ours), summary


#: what the floor tells, in its order; then who waited, which also counts those whom placement has moved
TOLD = ("average_jct", "median_jct", "p95_jct", "p99_jct", "max_jct", "makespan", "average_queueing", "average_responsiveness")
TOLD += ("utilization", "gpu_hours")


def philly_table(quick: bool, history: History) -> None:
    trace = philly()
    if quick:
        trace = Trace(trace.frame.head(10_000), trace.source)
    program = floor_program()
    print(f"# {Path(trace.source).name}: {len(trace):,} jobs, 64x8 GPUs, 60 s rounds; CPU s, best of {TURNS} to {QUICK_TURNS} turns")
    declared = "first-free  ratio    loop  ratio  consolidated   loop"
    print(f"policy     floor    loop  {declared}   python-key  ratio   asked  ratio")
    for label, (name, settings) in POLICIES.items():
        policy = make_policy(name, settings)
        for kind in (policy, UNREAD[label]):
            simulate(trace.frame.head(50), "64x8", kind, placement="consolidated", round=60)  # compile
        (floor, floor_loop, told_by_floor), counted, inside, ours = in_turns(program, label, trace, policy)
        same = bool(told_by_floor) and all(math.isclose(ours[name], told, rel_tol=1e-6) for name, told in zip(TOLD, told_by_floor))
        placed, inside_placed, _ = timed(trace, "64x8", policy, round=60, placement="consolidated")
        python = [
            timed(trace, "64x8", kind, times, round=60, placement="first-free") for kind, times in ((WRITTEN[label], 3), (UNREAD[label], 1))
        ]
        assert {told.summary["log_hash"] for *_, told in python} == {ours["log_hash"]}
        written, asked = (seconds for seconds, *_ in python)
        ratios = [f"{seconds / floor:6.2f}" if same else "     -" for seconds in (counted, written, asked)]
        was = "" if quick else history.add(f"philly {label} first-free", counted) + history.add(f"philly {label} consolidated", placed)
        was += "" if quick else history.add(f"philly {label} asked", asked)
        loops = f"{inside / floor_loop:6.1f}" if same else "     -"
        left = f"{label:<9} {floor:6.3f} {floor_loop:7.4f} {counted:11.3f} {ratios[0]} {inside:7.4f} {loops}"
        right = f"{written:11.3f} {ratios[1]} {asked:7.2f} {ratios[2]}"
        print(f"{left} {placed:13.3f} {inside_placed:7.3f} {right}  {was}", flush=True)
    print(f"peak memory of all these runs in one process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def backfill_table(quick: bool, history: History) -> None:
    """FIFO with reservations, on events, by right estimates."""
    trace = philly()
    trace = Trace(trace.frame.head(4_000 if quick else 80_000), trace.source)
    print(f"\n# Backfilling, {trace.frame.height:,} jobs of the same list on events, first-free; CPU seconds")
    for variant in ("easy", "conservative"):
        policy = make_policy("fifo", {"backfill": variant})
        simulate(trace.frame.head(50), "64x8", policy)  # compile
        seconds, inside, run = timed(trace, "64x8", policy, 1)
        was = "" if quick else history.add(f"backfill {variant}", seconds)
        print(f"{variant:<13} {seconds:7.2f} s, loop {inside:7.2f} s, {run.summary['decisions']:,} decisions  {was}", flush=True)


def blox_table() -> None:
    """Rounds per CPU second on Blox' own workloads; Blox itself does 10 to 50."""
    print("\n# Blox workloads (generated by its recipe), regime blox, rounds of 300 s per CPU second; Blox does 10 to 50")
    for label, policy, settings in (
        ("L2, 42 jobs/h, LAS", "las", {"jobs": 3000, "jobs_per_hour": 42, "small": True}),
        ("A, 6 jobs/h, FIFO", "fifo", {"jobs": 3000, "jobs_per_hour": 6}),
    ):
        trace = generate("blox", seed=1, **settings)
        simulate(trace.frame.head(50), "32x4", policy, regime="blox")
        began = time.process_time()
        run = simulate(trace, "32x4", policy, regime="blox")
        seconds = time.process_time() - began
        print(f"{label:<22} {run.summary['rounds']:>7,} rounds {seconds:7.3f} s {run.summary['rounds'] / seconds:>12,.0f} rounds/s")


def growth_table(quick: bool, history: History) -> None:
    """SRTF along three axes: jobs, GPUs, and the length of the queue; each run in a process of its own, for its memory."""
    print("\n# SRTF, 60 s rounds, consolidated: jobs on 2500x8 GPUs at load 0.8, GPUs, load; CPU seconds")
    simulate(generate("philly", seed=1, jobs=50, load=0.8, gpus=20_000), "2500x8", "srtf", placement="consolidated", round=60)  # compile
    lines = [(10_000, 20_000, 0.8), (100_000, 20_000, 0.8), (1_000_000, 20_000, 0.8)]
    lines += [(500_000, gpus, 0.8) for gpus in (5_000, 20_000, 100_000)] + [(500_000, 5_000, load) for load in (1.2, 2.0)]
    found: dict[tuple[int, int, float], tuple[float, int]] = {}
    for jobs, gpus, load in lines[:2] if quick else lines:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, decisions, queue, memory = pool.apply(grown, (jobs, gpus, load))
        was = "" if quick else history.add(f"growth {jobs} jobs {gpus} GPUs load {load}", seconds)
        told = f"{1e6 * seconds / jobs:6.2f} us/job, {decisions:,} decisions, longest queue {queue:,}, peak {memory:,.0f} MB"
        print(f"{jobs:>9,} jobs {gpus:>7,} GPUs load {load}: {seconds:7.2f} s {told}  {was}", flush=True)
        found[jobs, gpus, load] = seconds, queue
    _exponents(found)
    if not quick:
        queue_table(history)


def queue_table(history: History) -> None:
    """FIFO in which nobody passes: the queue grows as long as jobs arrive faster than they end."""
    print("\n# FIFO in order, 500,000 jobs, 5,000 GPUs: more and more wait; CPU seconds")
    points = []
    for load in (0.8, 1.2, 2.0):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, decisions, queue, memory = pool.apply(grown, (500_000, 5_000, load, "fifo"))
        was = history.add(f"queue 500000 jobs 5000 GPUs load {load}", seconds)
        print(f"load {load}: {seconds:7.2f} s, {decisions:,} decisions, longest queue {queue:,}, peak {memory:,.0f} MB  {was}", flush=True)
        points.append((queue, seconds))
    print(f"exponents along the longest queue: {_steps(points)}", flush=True)


def _steps(points: Sequence[tuple[int, float]]) -> str:
    """The exponent with which the second number grows from point to point."""
    steps = [math.log(b[1] / a[1]) / math.log(b[0] / a[0]) for a, b in pairwise(sorted(points)) if a[0] > 0 and b[0] > a[0]]
    return ", ".join(f"{step:.2f}" for step in steps)


def _exponents(found: dict[tuple[int, int, float], tuple[float, int]]) -> None:
    """How time grows along each axis, from one row to the next: 1 is in proportion, 0 is not at all."""
    jobs = [(key[0], seconds) for key, (seconds, _) in found.items() if key[1:] == (20_000, 0.8) and key[0] != 500_000]
    gpus = [(key[1], seconds) for key, (seconds, _) in found.items() if (key[0], key[2]) == (500_000, 0.8)]
    waits = [(queue, seconds) for key, (seconds, queue) in found.items() if key[:2] == (500_000, 5_000)]
    for axis, points in (("jobs", jobs), ("GPUs", gpus), ("longest queue", waits)):
        if len(points) > 1:
            print(f"exponents along {axis}: {_steps(points)}", flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks core")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["philly", "backfill", "blox", "growth", "queue", "start"])
    parser.add_argument("--record", metavar="LABEL", help="add the numbers to benchmarks/history.csv under this label")
    options = parser.parse_args(arguments)
    history = History(options.record)
    print(f"# {machine()}")
    if options.only in (None, "philly"):
        philly_table(options.quick, history)
    if options.only in (None, "backfill"):
        backfill_table(options.quick, history)
    if options.only in (None, "blox"):
        blox_table()
    if options.only in (None, "start"):
        start_table(options.quick, history)
    if options.only == "queue":
        queue_table(history)
    if options.only in (None, "growth"):
        growth_table(options.quick, history)
    history.write()


if __name__ == "__main__":
    main(sys.argv[1:])
