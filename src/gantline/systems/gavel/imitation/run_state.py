"""What a run in Gavel's rounds has become so far."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.engine.drivers.simulation import Simulation
from gantline.systems.gavel.imitation.setup import GavelSetup
from gantline.systems.gavel.imitation.tables import RoundCount, RoundTime, new_tasks

_ORDERS = 4096  # random orders of types drawn at a time


class GavelRunState:
    """Clock, accounts and draws of one run: all that a checkpoint keeps."""

    def __init__(self, simulation: Simulation, setup: GavelSetup) -> None:
        self.simulation = simulation
        self.setup = setup
        self.memory: Any = None
        self.calls = 0
        self.late: tuple[str, ...] = ()
        self.clock = np.zeros(len(RoundTime))
        self.count = np.zeros(len(RoundCount), dtype=np.int64)
        policy, regime = setup.policy, simulation.state.regime
        self.clock[RoundTime.LENGTH], self.clock[RoundTime.SPACING], self.clock[RoundTime.UNTIL] = (
            regime.round,
            policy.least_spacing,
            simulation.until,
        )
        self.count[RoundCount.LEFT] = setup.rules.high - setup.rules.low
        largest = int(setup.jobs.I[Job.GPUS].max(initial=1))
        self.tasks = new_tasks(4096 if setup.rules.packs else 256, len(setup.types), largest)
        self.draws = Random(simulation.state.seed + 5)  # the artifact's offset for this stream
        self.orders = self.draw_orders()

    def draw_orders(self) -> Ints:
        """Orders in which types are filled: one for all rounds, or a random one for each."""
        if self.setup.policy.aware:
            return self.setup.order[None, :]
        drawn = []
        for _ in range(_ORDERS):
            order = self.setup.order.tolist()
            self.draws.shuffle(order)
            drawn.append(order)
        return np.array(drawn, dtype=np.int64)
