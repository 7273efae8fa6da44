"""Plans that name every device: what a policy reads of them, and that a decision costs what changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from benchmarks.exact_devices import FirstFree, jobs
from tests.engine.states import commit, engine_of

from gantline import simulate
from gantline.core.plan import Assignment, Mode
from gantline.engine.holdings import Holdings
from gantline.engine.turns_by_hand import TurnsByHand
from gantline.engine.wanted import Wanted


def test_a_policy_reads_the_devices_of_all_in_rank_order() -> None:
    rows = [{"job": f"j{k}", "arrival": 0.0, "gpus": gpus, "duration": 100.0} for k, gpus in enumerate((2, 1, 3, 1, 1))]
    engine = engine_of(rows, "2x4")
    together: dict[str, Any] = {"group": 0, "mode": Mode.SPACE, "fraction": 0.5, "devices": (6,)}
    wanted = [Assignment(0, devices=(3, 1)), Assignment(2, devices=(7, 0, 5)), Assignment(3, **together), Assignment(4, **together)]
    commit(engine, wanted)
    seen = engine.state.snapshot().jobs
    assert [seen.devices(k) for k in range(5)] == [(3, 1), (), (7, 0, 5), (6,), (6,)]
    assert seen.devices(-1) == (6,)
    assert seen.devices(np.int64(-3)) == (7, 0, 5)
    with pytest.raises(IndexError):
        seen.devices(5)


def test_only_those_who_change_have_a_turn_and_nobody_is_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 60 jobs is looked at by hand when it starts and at no other decision, and its devices are read when it ends."""
    turns, chains = [], []
    turn, chain = TurnsByHand.turn, Holdings.chain

    def count_turn(self: TurnsByHand, w: Wanted) -> None:
        turns.append(w.row)
        turn(self, w)

    def count_chain(self: Holdings, row: int) -> tuple[int, ...]:
        chains.append(row)
        return chain(self, row)

    monkeypatch.setattr(TurnsByHand, "turn", count_turn)
    monkeypatch.setattr(Holdings, "chain", count_chain)
    run = simulate(jobs(60), "64x8", FirstFree())
    assert run.summary["completed"] == 60
    assert run.summary["decisions"] >= 100
    assert sorted(turns) == list(range(60))
    assert sorted(chains) == list(range(60))
