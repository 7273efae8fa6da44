"""Futures whose starts, stops and speeds are drawn from measured profiles: what a run would do from an instant on, in the same draw."""

from __future__ import annotations

import numpy as np
import pytest
from tests.models.test_predictions import measured_profiles, trace_rows

from gantline import simulate
from gantline.core.phases import Phase
from gantline.core.snapshot import Snapshot
from gantline.engine.drivers.journal import Journal
from gantline.models.profiles.profiled_model import ProfiledModel
from gantline.models.uncertainty import Uncertainty
from gantline.simulator.roll_forward import copied
from gantline.simulator.rollout import rollout

SURE = Uncertainty(0.0)


class Instants(Journal):
    """Keeps what the policy was shown, once nothing more arrives, while no order is in flight."""

    def __init__(self) -> None:
        super().__init__(whole=False)
        self.kept: list[Snapshot] = []

    def decided(self, snapshot: Snapshot, plan: object) -> None:
        quiet = set(map(int, snapshot.jobs.phase)) <= {Phase.PENDING, Phase.RUNNING}
        if snapshot.now >= float(trace_rows()[-1]["arrival"]) and quiet:  # type: ignore[arg-type]
            self.kept.append(copied(snapshot))


def test_each_future_is_a_draw_of_its_own_and_the_same_under_every_policy() -> None:
    seen, model = Instants(), ProfiledModel(measured_profiles())
    simulate(trace_rows(), "gpu:1x8", "fifo", performance=model, executor="measured", min_run=0.0, grace=0.0, turn=0.0, record=seen)
    now = seen.kept[0]
    first, again = (rollout(now, "fifo", draws=6, uncertainty=SURE)[0].finish for _ in range(2))
    assert (first == again).all()
    assert (np.ptp(first, axis=0) > 0.0).all(), "no two futures need be alike"
    one = rollout(now, "fifo", uncertainty=SURE)[0].finish
    assert len(one) == 1
    assert one[0] == pytest.approx(first.mean(axis=0), rel=0.1)
