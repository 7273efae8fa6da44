"""CPU seconds of fair share with a long queue: `python -m benchmarks fair_share`.

3,000 jobs of 40 users ask for a quarter more than 64 GPUs can give, and whoever has used least of late goes first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gantline import simulate

JOBS, CLUSTER = 3000, "8x8"


def jobs(count: int = JOBS) -> list[dict[str, Any]]:
    """Gangs of one to eight, exponential lengths."""
    rng = np.random.default_rng(3)
    gpus = rng.choice([1, 2, 4, 8], count, p=[0.6, 0.2, 0.15, 0.05])
    length = rng.exponential(2000.0, count) + 60.0
    arrival = np.sort(rng.uniform(0.0, float((gpus * length).sum()) / (1.25 * 64), count))
    user = rng.integers(40, size=count)
    return [
        {"job": f"j{k}", "arrival": float(at), "gpus": int(size), "duration": float(seconds), "user": f"u{who}"}
        for k, (at, size, seconds, who) in enumerate(zip(arrival, gpus, length, user))
    ]


def main() -> None:
    simulate(jobs(60), CLUSTER, "fair-share")  # compile
    told = simulate(jobs(), CLUSTER, "fair-share").summary
    seconds, decisions = float(told["cpu_seconds"]), int(told["decisions"])
    print(f"{JOBS} jobs under fair share, {decisions} decisions: {seconds:.2f} CPU s, {1e6 * seconds / decisions:.0f} us each")
    print(f"log {told['log_hash']}, {told['preemptions']} preemptions")


if __name__ == "__main__":
    main()
