"""Jobs that share devices: groups that start whole or not at all, shifted by a stage, packed, in turns; guests beside several hosts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.probes.scenario import ALONE, IN_ONE_GROUP, WIDE_AND_SLIM, Says, each, fact, facts, job, spans

from gantline.core.arrays import Floats
from gantline.core.columns import Job
from gantline.core.grant import Grant
from gantline.core.plan import Assignment, Mode, Plan
from gantline.core.policy import Policy
from gantline.core.reasons import Reason
from gantline.core.snapshot import Snapshot
from gantline.models.model import Gang, Gangs, PerformanceModel
from gantline.simulator.simulate import simulate


def test_each_member_of_a_group_that_starts_whole_or_not_at_all_has_a_reason() -> None:
    """Muri's groups, Lucid's pairs from the queue: the first job alone, the next two as a pair."""
    pair = {"group": 1, "mode": Mode.SPACE, "together": True}
    policy = each(lambda snapshot, k: {} if snapshot.jobs.ids[k] == "host" else pair)

    run = simulate([job("host", 1, 50), job("slim", 1, 30), job("wide", 2, 30)], "1x2", policy, until=10.0)

    assert run.tables.I[Job.REASON][:3].tolist() == [Reason.NONE, Reason.TOGETHER, Reason.RESOURCES]


def test_a_device_that_two_jobs_share_is_busy_once() -> None:
    """A packed pair of unequal sizes, as Gandiva packs when jobs outnumber devices."""
    assert simulate(WIDE_AND_SLIM, "1x2", IN_ONE_GROUP).summary["utilization"] == pytest.approx(1.0)


@pytest.mark.parametrize("round_length", [None, 60.0])
def test_a_speed_that_changes_by_itself_changes_at_its_instant_between_decisions(round_length: float | None) -> None:
    """After some epochs a job runs with another batch size (Accordion in Shockwave, NSDI 2023)."""

    class Regimes(PerformanceModel):
        """From forty units of work on, every job is twice as fast."""

        def granted(self, gang: Gang) -> tuple[float, float]:
            late = gang.done >= 40.0 - 1e-9
            return (2.0, math.inf) if late else (1.0, gang.since + 40.0 - gang.done)

    run = simulate(ALONE, "1x1", IN_ONE_GROUP, performance=Regimes(), round=round_length)

    assert spans(run, "a") == [(0.0, pytest.approx(40.0 + 30.0), [0], "finished")]


def in_pairs(sign: int = 1) -> Policy:
    """Two jobs a group in order of arrival; the later one begins a stage later, or earlier."""

    def terms(snapshot: Snapshot, k: int) -> dict[str, Any]:
        group, place = divmod(int(snapshot.jobs.rows[k]), 2)
        return {"group": group, "mode": Mode.INTERLEAVE, "offset": float(sign * place)}

    return each(terms)


@dataclass(frozen=True)
class Periods(PerformanceModel):
    """Muri's groups: a slot takes as long as the longest of the stages that run then. It notes what it is asked to compute."""

    expires: float = np.inf
    asked: list[list[int]] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        stages = np.stack([gangs.metric("load"), gangs.metric("crunch")], axis=1)
        now = np.where((gangs.place % 2 == 1)[:, None], stages[:, ::-1], stages)
        groups = int(gangs.group.max(initial=-1)) + 1
        slots = np.zeros((groups, 2))
        np.maximum.at(slots, gangs.group, now)
        self.asked.append(np.bincount(gangs.group, minlength=groups).tolist())
        self.places.append(gangs.place.tolist())
        until = np.where(gangs.rows == 0, gangs.now + self.expires, np.inf)
        return gangs.alone * stages.sum(axis=1) / slots.sum(axis=1)[gangs.group], until


PAIRS = [
    job("a", 1, 120, load=2, crunch=1),
    job("b", 1, 90, load=1, crunch=2),  # beside a, shifted: nothing meets
    job("c", 1, 120, load=2, crunch=1),
    job("d", 1, 60, load=2, crunch=1),  # beside c, shifted: four seconds a period instead of three
]


def test_each_group_has_the_period_of_its_own_members() -> None:
    run = simulate(PAIRS, "1x2", in_pairs(), performance=Periods())

    assert facts(run, "finish") == pytest.approx({"a": 120.0, "b": 90.0, "c": 140.0, "d": 80.0})


def test_a_speed_that_expires_for_one_member_is_asked_for_with_its_whole_group() -> None:
    model = Periods(expires=50.0)

    simulate(PAIRS[:2], "1x2", in_pairs(), performance=model)

    assert model.asked[:2] == [[2], [2]]  # the second time because the speed of a has expired


@pytest.mark.parametrize(("sign", "places"), [(1, [0, 1, 0, 1]), (-1, [1, 0, 1, 0]), (0, [0, 1, 0, 1])])
def test_the_place_in_a_group_is_by_offset_and_then_by_row(sign: int, places: list[int]) -> None:
    model = Periods()

    simulate(PAIRS, "1x2", in_pairs(sign), performance=model)

    assert model.places[0] == places


def test_an_offset_changes_in_place() -> None:
    """A Muri group whose second job begins a stage later from 100 s on (Zhao et al., SIGCOMM 2022)."""
    stages = {"loader": (2.0, 1.0), "cruncher": (1.0, 2.0)}  # seconds of (storage and CPU, GPU) per iteration

    class Stages(PerformanceModel):
        def granted(self, gang: Gang) -> float:
            group = [(one.model, one.grant.assignment.offset) for one in (gang, *gang.mates)]
            if len(group) == 1:
                return 1.0
            period = sum(max(stages[model][(slot - round(offset)) % 2] for model, offset in group) for slot in range(2))
            return sum(stages[gang.model]) / period

    policy = each(lambda snapshot, k: {"group": 7, "mode": Mode.INTERLEAVE, "offset": float(k * (snapshot.now >= 100))}, 100.0)
    run = simulate([job("a", 2, 300, model="loader"), job("b", 2, 150, model="cruncher")], "1x4", policy, performance=Stages())

    assert spans(run, "b") == [(0.0, pytest.approx(175.0), [0, 1], "finished")]  # 75 done by 100 s, then at full speed


def test_members_of_a_group_may_be_placed_by_the_engine_each_on_devices_of_its_own() -> None:
    """A CASSINI shift: jobs that share only a link begin their communication at different times (Rajasekaran et al., NSDI 2024)."""
    iteration = 0.2  # seconds, half of it on the wire

    class Uplinks(PerformanceModel):
        """Two jobs that cross racks meet on the uplinks: half their iteration is at half speed, unless they are shifted apart."""

        def granted(self, gang: Gang) -> float:
            place = gang.cluster

            def wire(grant: Grant) -> tuple[bool, float]:
                crosses = len({int(place.node_rack[place.device_node[d]]) for d in grant.devices}) > 1
                return crosses, grant.assignment.offset % iteration

            own = wire(gang.grant)
            meets = own[0] and any(wire(mate.grant) == own for mate in gang.mates)
            return iteration / (iteration + 0.1) if meets else 1.0

    policy = each(lambda snapshot, k: {"group": 0, "offset": 0.1 * k})
    run = simulate([job("j0", 2, 100), job("j1", 2, 60)], "1x2@east,1x2@west", policy, performance=Uplinks())

    assert [devices for name in ("j0", "j1") for _, _, devices, _ in spans(run, name)] == [[0, 1], [2, 3]]


def test_a_job_that_leaves_a_rotation_for_a_place_outside_it_is_preempted() -> None:
    """Gandiva's turns: gangs of one rotation, of which the policy leaves out those that wait for theirs (Xiao et al., OSDI 2018)."""
    policy = Says(lambda snapshot: [Assignment(1) if snapshot.now >= 40.0 else Assignment(0, group=3, mode=Mode.TIME)], (40.0,))

    run = simulate([*ALONE, job("b", 1, 100)], "1x1", policy, until=60.0)

    assert spans(run, "a")[0] == (0.0, 40.0, [0], "preempted")
    assert fact(run, "a", "preemptions") == 1


# Guests on the devices of several hosts, without a group: AntMan's opportunistic jobs (Xiao et al., OSDI 2020).
WHERE = {"left": (0, 1), "right": (2, 3), "guest": (1, 2), "other": (3,), "alone": (0, 1)}
HOSTS = [job("left", 2, 100), job("right", 2, 100)]


def named(fraction: float = 1.0) -> Policy:
    """Every job on its devices; all but `alone` let others be there too."""

    def terms(snapshot: Snapshot, k: int) -> dict[str, Any]:
        name = snapshot.jobs.ids[k]
        return {"devices": WHERE[name], "mode": Mode.EXCLUSIVE if name == "alone" else Mode.SPACE, "fraction": fraction}

    return each(terms)


def test_a_guest_ties_two_hosts_and_they_are_no_mates_of_each_other() -> None:
    class CountsMates(PerformanceModel):
        """Half the speed for each gang on a device of its own."""

        def granted(self, gang: Gang) -> float:
            return 0.5 ** len(gang.mates)

    run = simulate([*HOSTS, job("guest", 2, 25)], "1x4", named(), performance=CountsMates())

    assert spans(run, "guest") == [(0.0, pytest.approx(100.0), [1, 2], "finished")]  # two mates: a quarter
    assert fact(run, "left", "finish") == fact(run, "right", "finish") == pytest.approx(150.0)  # one mate for 100 s
    assert facts(run, "restarts") == {"left": 0, "right": 0, "guest": 0}


@pytest.mark.parametrize(
    ("fraction", "work", "ends"), [(1.0, 50, (100.0, 150.0)), (0.5, 20, (40.0, 200.0))], ids=["more than one device", "fits"]
)
def test_without_a_model_each_device_is_divided_by_what_is_asked_of_it(fraction: float, work: float, ends: tuple[float, float]) -> None:
    run = simulate([*HOSTS, job("guest", 2, work)], "1x4", named(fraction))

    assert (fact(run, "guest", "finish"), fact(run, "left", "finish")) == pytest.approx(ends)


def test_a_guest_that_arrives_later_stops_no_host_and_one_that_does_not_share_waits() -> None:
    run = simulate([*HOSTS, job("other", 1, 10, at=20.0), job("alone", 2, 10, at=30.0)], "1x4", named())

    assert spans(run, "right") == [(0.0, pytest.approx(110.0), [2, 3], "finished")]
    assert spans(run, "left") == [(0.0, pytest.approx(100.0), [0, 1], "finished")]
    assert spans(run, "alone")[0][0] == pytest.approx(100.0)


def test_what_is_shared_can_be_read_in_the_snapshot() -> None:
    """AntMan: a guest with a part of the device of the least used host, and a cap on its memory."""
    idle = {"busy": 0.1, "calm": 0.6}  # part of the device that a guaranteed job leaves idle
    seen: list[tuple[float, tuple[int, ...], float, float, list[int]]] = []

    class Fractions(PerformanceModel):
        def granted(self, gang: Gang) -> float:
            return gang.grant.assignment.fraction

    class AntMan(Policy):
        """Guaranteed jobs (priority 1) own a GPU each; an opportunistic one stays, or goes to the least used of them."""

        def decide(self, snapshot: Snapshot) -> Plan:
            jobs = snapshot.jobs
            hosts = [k for k in range(len(jobs)) if jobs.priority[k] == 1]
            rows = [Assignment(k, group=int(jobs.rows[k]), mode=Mode.SPACE, memory_cap=12.0) for k in hosts]
            for guest in set(range(len(jobs))) - set(hosts):
                grant = jobs.grant(guest)
                if grant is not None:
                    item = grant.assignment
                    seen.append((snapshot.now, jobs.devices(guest), item.fraction, item.memory_cap, sorted(grant.members[0])))
                there = [k for k in hosts if set(jobs.devices(k)) & set(jobs.devices(guest))]
                host = max(there or hosts, key=lambda k: idle[jobs.ids[k]], default=None)
                shared = {} if host is None else {"group": int(jobs.rows[host]), "mode": Mode.SPACE}
                rows.append(Assignment(guest, fraction=0.5, memory_cap=4.0, **shared))
            return Plan.assign(rows, valid_until=math.inf)

    guaranteed = [job("busy", 1, 200, priority=1.0), job("calm", 1, 100, priority=1.0)]
    simulate([*guaranteed, job("guest", 1, 60, at=20.0, priority=0.0)], "1x2", AntMan(), performance=Fractions())

    assert seen[0] == (100.0, (1,), 0.5, 4.0, [1, 2])
