"""AntMan: an opportunistic job beside a guaranteed one, with a share of the device and a memory cap (Xiao et al., OSDI 2020)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.probes.scenario import FOREVER, job

from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, PerformanceModel
from gantline.simulator.simulate import simulate

IDLE = {"busy": 0.1, "calm": 0.6}  # part of the device that a guaranteed job leaves idle


@dataclass(frozen=True)
class Coordinator(PerformanceModel):
    """The guaranteed job runs as if alone; the other one gets the idle part, at most its fraction, less if memory is short."""

    def granted(self, gang: Gang) -> float:
        assert gang.grant is not None
        item = gang.grant.assignment
        if item.fraction == 1.0:
            return 1.0
        hosts = [mate.job for mate in gang.mates if set(mate.grant.devices) & set(gang.grant.devices)]
        idle = min((IDLE[name] for name in hosts), default=1.0)
        return min(item.fraction, idle) * (1.0 if item.memory_cap >= 4.0 else 0.5)


@dataclass(frozen=True)
class AntMan(Policy):
    """Guaranteed jobs (priority 1) own a GPU each; an opportunistic one goes to the least used of them, seen in the snapshot."""

    fraction: float = 0.5

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs = snapshot.jobs
        hosts = [k for k in range(len(jobs)) if jobs.priority[k] == 1]
        guests = [k for k in range(len(jobs)) if jobs.priority[k] == 0]
        use = {k: 1 - IDLE[jobs.ids[k]] for k in hosts}
        rows = [Assignment(k, group=int(jobs.rows[k]), mode=Mode.SPACE, memory_cap=12.0) for k in hosts]
        for guest in guests:
            there = next((k for k in hosts if set(jobs.devices(k)) & set(jobs.devices(guest))), None)
            host = there if there is not None else min(use, key=lambda k: use[k], default=None)
            group = int(jobs.rows[host]) if host is not None else -1
            mode = Mode.SPACE if host is not None else Mode.EXCLUSIVE
            rows.append(Assignment(guest, group=group, mode=mode, fraction=self.fraction, memory_cap=4.0))
        return Plan.assign(rows, valid_until=FOREVER)


JOBS = [job("busy", 1, 200, priority=1.0), job("calm", 1, 100, priority=1.0), job("guest", 1, 60, at=20.0, priority=0.0)]


def test_what_is_shared_can_be_read_in_the_snapshot() -> None:
    seen: list[tuple[float, tuple[int, ...], float, float, list[int]]] = []

    @dataclass(frozen=True)
    class Watching(AntMan):
        def decide(self, snapshot: Snapshot) -> Plan:
            for k, name in enumerate(snapshot.jobs.ids):
                grant = snapshot.jobs.grant(k)
                if name == "guest" and grant is not None:
                    item = grant.assignment
                    seen.append((snapshot.now, snapshot.jobs.devices(k), item.fraction, item.memory_cap, sorted(grant.members[0])))
            return AntMan.decide(self, snapshot)

    simulate(JOBS, "1x2", Watching(), performance=Coordinator())

    assert seen[0] == (100.0, (1,), 0.5, 4.0, [1, 2])
