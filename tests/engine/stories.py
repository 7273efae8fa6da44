"""A scenario: a small cluster, a few jobs, a policy, and a world in which messages get lost and machines die; told by one seed."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
from tests.engine.assigning import Breathers, PairedRota, Pairs, Rota, Tries, Wanderers

from gantline import Trace
from gantline.core.cluster_spec import parse_cluster
from gantline.core.columns import Job
from gantline.core.inputs import Input, NodeEvent
from gantline.core.tables import Tables
from gantline.engine.drivers.acknowledged import Acknowledged
from gantline.engine.drivers.faulty import Faults, FaultyExecutor
from gantline.engine.drivers.simulation import Simulation
from gantline.engine.engine import Engine
from gantline.engine.executor import Can
from gantline.engine.regime import Regime
from gantline.engine.state import State
from gantline.policies.placement.rules import find_placement
from gantline.policies.registry import make_policy
from gantline.traces.to_tables import load_tables

POLICIES = ("fifo", "srtf", "las", "srsf", "smallest", "tiresias", "fair-share", "pairs", "wanderers")
USUAL = frozenset({Can.SHARE, Can.BATCH})
ASSIGNING = {"pairs": Pairs, "wanderers": Wanderers, "breathers": Breathers, "rota": Rota, "paired rota": PairedRota, "tries": Tries}


@dataclass
class Ending:
    """What is left when the scenario is over."""

    tables: Tables
    executor: FaultyExecutor
    loop: Simulation
    end: float

    @property
    def unfinished(self) -> list[str]:
        return [self.tables.ids[row] for row in np.flatnonzero(np.isnan(self.tables.F[Job.FINISH]))]


def jobs_of(rng: random.Random, most_gpus: int, hybrid: bool = False) -> Trace:
    """A few jobs; on a hybrid cluster some of them may also run on CPUs, at half the speed."""
    arrival, rows = 0.0, []
    for number in range(rng.randint(2, 10)):
        arrival += rng.choice([0, 5, 30, 100])
        rows.append(
            {
                "job": f"j{number}",
                "arrival": arrival,
                "gpus": rng.randint(1, min(most_gpus, 6)),
                "duration": float(rng.randint(10, 400)),
                "user": rng.choice(["ana", "bo"]),
            }
        )
        if hybrid:
            gpus, length = rows[-1]["gpus"], rows[-1]["duration"]
            slow = f"|cpu:0/4={2 * length}" if rng.random() < 0.5 else ""
            rows[-1]["options"] = f"gpu:{gpus}={length}{slow}"
    return Trace.from_records(rows)


def tell(
    seed: int, *, faults: Faults | None = None, policy: str | None = None, able: frozenset[Can] = USUAL, requests: tuple[Input, ...] = ()
) -> Ending:
    """The scenario of a seed; `faults` replaces the drawn ones, `policy` the drawn policy; `able` is what need not stop a gang."""
    rng = random.Random(seed)
    nodes, per = rng.randint(1, 5), rng.choice([1, 2, 4])
    hybrid = faults is None and rng.random() < 0.25
    trace = jobs_of(rng, nodes * per, hybrid)
    drawn = Faults(
        delay=(0.0, rng.choice([0.0, 2.0, 20.0])),
        loss=rng.choice([0.0, 0.1, 0.4]),
        doubled=rng.choice([0.0, 0.3]),
        start=(0.0, rng.choice([0.0, 30.0])),
        stop=(0.0, rng.choice([0.0, 30.0])),
        release=(0.0, rng.choice([0.0, 10.0])),
        checkpoint=rng.choice([math.inf, 50.0]),
    )
    world = faults or drawn
    calm = faults is not None
    tables = load_tables(trace, parse_cluster(f"{nodes}x{per},cpu:1x0/8c" if hybrid else f"{nodes}x{per}"), checkpoint=world.checkpoint)
    placement = find_placement(rng.choice(["first-free", "consolidated:preferred"]))
    name = policy or rng.choice(POLICIES)
    engine = Engine(State(tables, Regime(), placement, seed=seed), ASSIGNING[name]() if name in ASSIGNING else make_policy(name))
    changes: list[NodeEvent] = []
    if not calm and nodes > 1 and rng.random() < 0.5:
        at, back = rng.uniform(0, 500), rng.uniform(1, 300)
        name = tables.cluster.nodes[rng.randrange(nodes + hybrid)].name
        changes = [NodeEvent(at, name, "down"), NodeEvent(at + back, name, "up")]
    executor = FaultyExecutor(tables.F[Job.WORK].copy(), world, seed, able=able)
    latency = 0.0 if calm else rng.choice([0.0, 0.0, 5.0, 40.0])
    loop = Simulation(
        engine,
        latency=latency,
        node_events=tuple(sorted((*changes, *requests), key=lambda one: one.time)),
        until=100_000.0,
        driver=Acknowledged(engine, executor),
    )
    loop.run()
    return Ending(tables, executor, loop, engine.state.now)
