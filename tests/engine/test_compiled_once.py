"""Kernels of the loop are compiled for one form of its tables: another memory order, or a key that cannot be written to, costs seconds."""

from __future__ import annotations

import sys

import pytest
from tests.systems.gavel.tiny_world import table, trace

from gantline import Plan, Policy, Snapshot
from gantline.core.machine_code import kernel
from gantline.core.machine_code.kernel import Kernel
from gantline.simulator.simulate import simulate


class First(Policy):
    """Decides by a column of the snapshot, which nobody may write to."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(snapshot.jobs.arrival)


class Last(Policy):
    """Decides by an array of its own."""

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.rank(-snapshot.jobs.arrival)


def kernels() -> list[Kernel]:
    modules = [module for name, module in sys.modules.items() if name.startswith("gantline.")]
    return list({id(value): value for module in modules for value in vars(module).values() if isinstance(value, Kernel)}.values())


def test_whatever_decides_and_whatever_the_speeds_are(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = trace(*[("big", 400.0, 30.0 * k) for k in range(8)])
    simulate(jobs, "v100:1,k80:1", "fifo", throughputs=table())
    for each in kernels():
        monkeypatch.setattr(each, "_entries", {})
        monkeypatch.setattr(each, "_call", kernel._not_found)
    for cluster in ("v100:1", "v100:1,p100:1,k80:1"):
        for policy in ("fifo", "srtf", "las", First(), Last()):
            simulate(jobs, cluster, policy, throughputs=table())
            simulate(jobs, cluster, policy)
    called = {each.full_name: len(each._entries) for each in kernels() if each._entries}
    assert {"rank_and_walk", "_add_up", "run_in_order"} <= {name.rpartition(".")[2] for name in called}
    assert {name: count for name, count in called.items() if count > 1} == {}
