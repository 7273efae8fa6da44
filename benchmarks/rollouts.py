"""Futures per CPU second from one instant: 100 gangs run, 1,000 wait, work is drawn, everything runs to its end.

    python -m benchmarks rollouts [--policies srtf,fifo,sjf,srsf] [--futures 400] [--engine] [--quotas]

Printed are milliseconds of CPU time for a future in a batch on one core, the draws included, and (``--engine``) for one that the engine
rolls forward. With ``--quotas`` there are three queues with quotas, of which two may borrow, a minimum run and costs;
then 12 gangs run and 120 wait, and the engine rolls every future forward.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot
from gantline.engine.assembly.run_rules import RunRules
from gantline.simulator.roll_forward import RollForward
from gantline.simulator.rollout import rollout
from gantline.traces.files.policies import load_policy

QUEUES = [{"name": "a", "quota": 8, "borrow": 8}, {"name": "b", "quota": 8, "borrow": 4}, {"name": "c", "quota": 4}]


def instant(running: int = 100, waiting: int = 1000, seed: int = 0, quotas: bool = False) -> Snapshot:
    """Gangs of 1 to 8 devices; the cluster is what those that run hold."""
    random = np.random.default_rng(seed)
    sizes = random.choice([1, 1, 1, 1, 2, 2, 4, 8], running + waiting)
    estimate = np.round(60.0 * 10.0 ** random.uniform(0.5, 3.0, running + waiting))
    jobs: list[dict[str, Any]] = []
    free = 0
    for k, (gpus, work) in enumerate(zip(sizes.tolist(), estimate.tolist())):
        job: dict[str, Any] = {"id": f"j{k}", "arrival": k, "gpus": gpus, "estimate": work}
        if quotas:
            job["queue"] = "abc"[k % 3]
        if k < running:
            job["devices"] = list(range(free, free + gpus))
            free += gpus
        jobs.append(job)
    nodes = -(-free // 8)
    bounds = {"queue_tree": QUEUES, "min_run": 60.0, "costs": {"start": 2.0, "resume": 5.0}} if quotas else {}
    return decode_snapshot({"now": 3600, "cluster": f"{nodes}x8", "jobs": jobs, **bounds})


def main() -> None:
    """Print one line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--policies", default="srtf,fifo,sjf,srsf")
    parser.add_argument("--futures", type=int, default=400)
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--quotas", action="store_true")
    given = parser.parse_args()
    snapshot = instant(12, 120, quotas=True) if given.quotas else instant()
    print(f"{int(snapshot.jobs.running.sum())} gangs run, {int((~snapshot.jobs.running).sum())} wait, {snapshot.cluster.gpus} devices")
    for name in given.policies.split(","):
        rollout(snapshot, name, draws=2)
        best = np.inf
        for number in range(3):
            began = time.process_time()
            found = rollout(snapshot, name, draws=given.futures // 4, seed=number)[0]
            best = min(best, (time.process_time() - began) / (given.futures // 4))
        told = f"{name}: {1000 * best:.2f} ms of CPU a future, {1 / best:.0f} a second{'' if found.on_records else ' (by the engine)'}"
        if given.engine:
            began = time.process_time()
            here = RollForward(snapshot, load_policy(name), RunRules.at(snapshot))
            here.roll()
            told += f"; by the engine {1000 * (time.process_time() - began):.1f} ms"
        print(told, flush=True)


if __name__ == "__main__":
    main()
