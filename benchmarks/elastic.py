"""Milliseconds of CPU of one decision for elastic jobs, and of carrying it out: 1,000 of them on 4,096 GPUs, and how that grows.

    python -m benchmarks elastic [--jobs 250,1000]

Curves follow Amdahl's law, or are rough (``rough``: gains that rise and fall, so that FfDL needs its dynamic program). The second number of
each pair is the engine's commit of the plan. Everybody is a newcomer, which is the worst case for admission.
The least of three is shown.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any

import numpy as np

from gantline.core.plan import Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.core.tables import tables_behind
from gantline.engine.engine import Engine
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.elastic.packing import rearrange
from gantline.policies.placement.rules import find_placement
from gantline.policies.registry import make_policy

BEST_OF = 3
VODA = ("fifo", "elastic_fifo", "srjf", "elastic_srjf", "tiresias", "elastic_tiresias", "ffdl", "afs_l")
POLICIES: list[tuple[str, dict[str, Any]]] = [
    *((f"voda.{name}", {}) for name in VODA),
    *((f"voda.{name}", {"compat": "voda"}) for name in VODA),
    ("afs", {}),
    ("afs", {"layout": "packed"}),
    ("equal-share", {}),
    ("ffdl", {}),
    ("optimus", {}),
    ("lyra", {}),
    ("elasticflow", {"admission": "off"}),
    ("elasticflow", {}),
    ("edf", {}),
]


def instant(jobs: int, rough: bool) -> Snapshot:
    """So many waiting jobs of up to 4, 8, 16 or 32 workers, and four GPUs for each."""
    draw = np.random.default_rng(0)
    listed = []
    for k in range(jobs):
        most, fraction, least = int(draw.choice([4, 8, 16, 32])), draw.uniform(0.8, 0.99), int(draw.choice([1, 1, 1, 2]))
        options = []
        for size in range(1, most + 1):
            rate = 1.0 / (1.0 - fraction + fraction / size) * (draw.uniform(0.9, 1.1) if rough else 1.0)
            options.append({"type": "gpu", "gpus": size, "rate": float(rate)})
        job = {"id": f"job{k}", "arrival": float(k), "gpus": int(draw.integers(least, most + 1)), "min_gpus": least, "max_gpus": most}
        job |= {"priority": -int(draw.integers(2)), "estimate": float(draw.uniform(100, 1e5)), "options": options}
        listed.append(job | {"deadline": float(k + draw.uniform(1e3, 1e6))})
    return decode_snapshot({"cluster": f"gpu:{max(jobs // 2, 1) * 4096 // 4000 + 1}x8", "now": float(jobs), "jobs": listed})


def timed(policy: Policy, snapshot: Snapshot) -> tuple[float, float]:
    """CPU seconds of one decision and of its commit."""
    begin = time.process_time()
    plan = policy.decide(snapshot)
    return time.process_time() - begin, carried_out(snapshot, plan)


def carried_out(snapshot: Snapshot, plan: Plan) -> float:
    """CPU seconds of a commit of the plan, on a copy of the state."""
    copy = decode_snapshot(encode_snapshot(snapshot))
    state = State(tables_behind(copy), Regime(), find_placement("first-free"), now=copy.now, decision=copy.decision)
    state.activate(copy.jobs.rows)
    state.rebuild()
    engine = Engine(state, Policy())
    begin = time.process_time()
    engine.commit(plan)
    return time.process_time() - begin


def binding(nodes: int) -> float:
    """Milliseconds to pack and bind jobs of all sizes on so many nodes of eight."""
    draw = np.random.default_rng(0)
    sizes, capacity = draw.choice([1, 2, 4, 8, 12], nodes), np.full(nodes, 8)
    layout = rearrange(sizes, np.zeros((nodes, nodes), dtype=np.int64), capacity)
    new = np.where(draw.random(nodes) < 0.3, np.maximum(sizes // 2, 1), sizes)
    begin = time.process_time()
    rearrange(new, layout, capacity)
    return 1e3 * (time.process_time() - begin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", default="250,1000")
    counts = [int(part) for part in parser.parse_args().jobs.split(",")]
    gc.set_threshold(50_000, 20, 100)  # as the command line has it
    for rough in (False, True):
        instants = [instant(count, rough) for count in counts]
        print(f"{'rough curves' if rough else 'Amdahl curves':<34}" + "".join(f"{count:>16}" for count in counts))
        for name, settings in POLICIES:
            policy = make_policy(name, settings)
            policy.decide(instants[0])
            cells = []
            for snapshot in instants:
                tried = [timed(policy, snapshot) for _ in range(BEST_OF)]
                decision, commit = (1e3 * min(column) for column in zip(*tried))
                cells.append(f"{decision:>9.1f}{commit:>7.1f}")
            print(f"{' '.join([name, *map(str, settings.values())]):<34}" + "".join(cells), flush=True)
    print(f"{'nodes':<34}" + "".join(f"{count:>9}" for count in counts))
    print(f"{'packing and binding':<34}" + "".join(f"{binding(count):>9.1f}" for count in counts))


main()
