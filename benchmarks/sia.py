"""CPU seconds of Sia: one decision as jobs and GPUs grow, and whole runs in the clock of its simulator.

    python benchmarks/sia.py [--data FOLDER]

Decisions are made for jobs of a made-up network that have run on two of three GPU types. With ``--data`` (a folder with the published
``profiles/`` and ``workloads/``) the 13-job and a 160-job workload are run too.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from gantline.core.cluster_spec import parse_cluster
from gantline.models.goodput.measured import Application, StepTimes, Training
from gantline.policies.node_classes import node_classes
from gantline.simulator.simulate import simulate
from gantline.systems.sia.imitation.deciding import SiaScheduler
from gantline.systems.sia.imitation.jobs import Charges, Fitter, MeasuredType, SiaJob, SiaRequest
from gantline.systems.sia.imitation.rounds import SiaGrant
from gantline.systems.sia.policies.program import Configurations
from gantline.traces.importers import import_trace

SIZES = ((64, 20), (256, 80), (1024, 320), (2048, 640))


def a_network(seed: int) -> Application:
    """Step times and gradient noise of a made-up network, faster on some types than on others."""
    draw = np.random.default_rng(seed)
    times = {}
    for kind, speed in (("t4", 1.0), ("rtx", 2.2), ("a100", 5.0)):
        second, sync = draw.uniform(0.7, 1.3) / speed, draw.uniform(0.05, 0.4) / speed
        rows = {}
        for shape in ((1,), (2,), (4,), (8,), (8, 8), (4, 4)):
            wait = 1e-4 if shape == (1,) else sync * (1.0 + 0.1 * len(shape))
            rows[shape] = np.array([[m, second * (0.2 + 0.8 * m / 64) + wait, wait] for m in (8.0, 16.0, 32.0, 64.0, 128.0)])
        times[kind] = StepTimes(rows)
    batches = np.array([64.0, 512.0, 4096.0])
    progress = np.tile(np.arange(1.0, 51.0) * 1000, (3, 1))
    return Application(f"net{seed}", Training(batches, progress, progress, np.ones((3, 50)), np.full((3, 50), draw.uniform(1, 40))), times)


def some_jobs(columns: Configurations, count: int) -> tuple[list[SiaJob], list[SiaGrant | None]]:
    """Jobs in the middle of their lives, each with a configuration of its own."""
    draw, fitter = np.random.default_rng(count), Fitter("compiled")
    networks = [a_network(seed) for seed in range(5)]
    jobs: list[SiaJob] = []
    held: list[SiaGrant | None] = []
    for row in range(count):
        network = networks[int(draw.integers(5))]
        types = {kind: MeasuredType(network, kind, hybrid=False) for kind in ("t4", "rtx", "a100")}
        job = SiaJob(
            SiaRequest(row, f"job{row}", 0.0, network.name, "adaptive", 1, 4096.0), network, types, Charges(30.0, 30.0, 1.0), fitter
        )
        widest = int(2 ** draw.integers(0, 5))
        job.noise, job.starts = (1.0, float(draw.uniform(1, 40))), int(draw.integers(1, 6))
        for kind in ("t4", "rtx"):
            for gpus in (1, 2, 4, 8, 16):
                if gpus <= widest:
                    shape = (gpus,) if gpus <= 8 else (8, 8)
                    for local in (16, 32, 64):
                        job.beliefs[kind].observe(len(shape), gpus, local, *types[kind].times(shape, local))
        jobs.append(job)
        column = columns.find(0, min(widest, 4))
        held.append(SiaGrant(0, int(columns.gpus[column])) if draw.random() < 0.7 else None)
    return jobs, held


def decisions() -> None:
    print(f"{'GPUs':>6}{'jobs':>6}{'columns':>9}{'ms a decision':>15}{'of it program':>15}")
    for gpus, count in SIZES:
        part = gpus // 64
        columns = Configurations.of(node_classes(parse_cluster(f"t4:{6 * part}x4,rtx:{3 * part}x8,a100:{2 * part}x8")))
        jobs, held = some_jobs(columns, count)
        scheduler = SiaScheduler(columns)
        scheduler.decide(3600.0, jobs, held)  # compiled, and what changes seldom is there
        begin = time.process_time()
        for minute in range(3):
            scheduler.decide(3600.0 + 60.0 * minute, jobs, held)
        whole = (time.process_time() - begin) / 3
        holds = np.array([-1 if grant is None else columns.find(grant.group, grant.gpus) for grant in held])
        begin = time.process_time()
        for minute in range(3):
            scheduler.costs(3600.0 + 60.0 * minute, jobs, holds)
        matrix = (time.process_time() - begin) / 3
        print(f"{gpus:>6}{count:>6}{len(columns):>9}{1e3 * whole:>15.1f}{1e3 * (whole - matrix):>15.1f}", flush=True)


def runs(data: Path) -> None:
    print(f"\n{'workload':<28}{'jobs':>6}{'CPU s':>8}{'rounds':>8}{'ms each':>9}{'fits':>7}{'mean JCT h':>12}")
    clusters = {"short_phoebe_first13": "rtx:3x8,dgx-ext:2x8,quad:1x4", "philly/workload-1": "aws:6x4,rtx:3x8,dgx-ext:2x8"}
    for name, cluster in clusters.items():
        for fit in ("artifact", "compiled"):
            trace = import_trace("pollux", data / "workloads" / f"{name}.csv")
            begin = time.process_time()
            told = simulate(trace, cluster, "sia", settings={"fit": fit}, regime="sia", profiles=data / "profiles").summary
            spent = time.process_time() - begin
            row = f"{name.split('/')[0] + ' ' + fit:<28}{told['jobs']:>6}{spent:>8.2f}{told['decisions']:>8}"
            print(f"{row}{1e3 * spent / told['decisions']:>9.1f}{told['fits']:>7}{told['average_jct'] / 3600:>12.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    decisions()
    if given.data:
        runs(given.data)


if __name__ == "__main__":
    main()
