"""CPU seconds of a run in which a policy names every device: `python -m benchmarks exact_devices`.

2,500 jobs on 512 GPUs at about full load. The policy is what somebody would write first: whoever runs keeps its devices, asked for one by
one, and who waits gets the first free ones in order of arrival, passing over those that do not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gantline import Assignments, Plan, Policy, Snapshot, simulate
from gantline.core.columns import FREE

JOBS, CLUSTER = 2500, "64x8"


@dataclass(frozen=True)
class FirstFree(Policy):
    """Names the devices of everybody."""

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = snapshot.jobs
        running, gpus = jobs.running, jobs.gpus
        free = np.flatnonzero(snapshot.cluster.device_holder == FREE).tolist()
        who, where = [], []
        for position in np.flatnonzero(running).tolist():
            who.append(position)
            where.append(jobs.devices(position))
        for position in np.flatnonzero(~running).tolist():
            size = int(gpus[position])
            if size <= len(free):
                who.append(position)
                where.append(tuple(free[:size]))
                del free[:size]
        return Plan.assign(Assignments(who, devices=where), valid_until=float("inf"))


def jobs(count: int = JOBS) -> list[dict[str, Any]]:
    """Gangs of one to eight that ask for 0.95 of the cluster in the long run."""
    rng = np.random.default_rng(1)
    gpus = rng.choice([1, 2, 4, 8], count, p=[0.4, 0.3, 0.2, 0.1])
    length = rng.uniform(500.0, 4000.0, count)
    span = float((gpus * length).sum()) / (0.95 * 512)
    arrival = np.sort(rng.uniform(0.0, span, count))
    return [
        {"job": f"j{k}", "arrival": float(at), "gpus": int(size), "duration": float(seconds)}
        for k, (at, size, seconds) in enumerate(zip(arrival, gpus, length))
    ]


def run(count: int = JOBS) -> Mapping[str, Any]:
    return simulate(jobs(count), CLUSTER, FirstFree()).summary


def main() -> None:
    run(50)  # compile
    told = run()
    seconds, decisions = float(told["cpu_seconds"]), int(told["decisions"])
    each = 1e6 * seconds / decisions
    print(f"{JOBS} jobs on exact devices, {decisions} decisions: {seconds:.2f} CPU s, {each:.0f} us each, policy included")
    print(f"log {told['log_hash']}")


if __name__ == "__main__":
    main()
