"""The engine keeps its promises whatever messages do: thousands of seeded scenarios (`make scenarios` tells ten thousand)."""

from __future__ import annotations

import numpy as np
import pytest
from tests.engine.assigning import Pairs
from tests.engine.stories import jobs_of, tell

from gantline import simulate
from gantline.core.columns import Job
from gantline.engine.drivers.faulty import Faults
from gantline.engine.log import Interval


def overlaps(ending) -> list[str]:
    """Devices that the log gives to more gangs at once than the policy allows: one, or two under the policy that pairs."""
    allowed = 2 if isinstance(ending.loop.engine.policy, Pairs) else 1
    log = ending.loop.state.log
    spans: dict[int, list[tuple[float, float, int]]] = {}
    for at in range(log.intervals):
        first, count = int(log.LI[Interval.OFFSET, at]), int(log.LI[Interval.COUNT, at])
        for device in log.LD[first : first + count].tolist():
            start, end = float(log.LF[Interval.START, at]), float(log.LF[Interval.END, at])
            if start != end:  # else the grant was withdrawn before it went out
                spans.setdefault(device, []).append((start, ending.end if np.isnan(end) else end, at))
    found = []
    for device, held in spans.items():
        held.sort()
        for at, (start, _, _) in enumerate(held):
            still = [other for other in held[:at] if other[1] > start + 1e-6]
            if len(still) >= allowed:
                found.append(f"device {device}: {still} and {held[at]}")
    return found


def test_every_scenario_ends_well(scenario_seeds):
    for seed in scenario_seeds:
        ending = tell(seed)
        assert not ending.executor.breaches, f"seed {seed}: {ending.executor.breaches[:3]}"
        assert not ending.unfinished, f"seed {seed}: {ending.unfinished} never finished"
        assert not ending.loop.engine.incidents, f"seed {seed}: {ending.loop.engine.incidents[:2]}"
        assert not overlaps(ending), f"seed {seed}: {overlaps(ending)[:2]}"


def test_trials_never_count_whatever_messages_do():
    for seed in range(6):
        ending = tell(seed, policy="tries")
        assert not ending.executor.breaches, f"seed {seed}: {ending.executor.breaches[:3]}"
        assert not ending.unfinished, f"seed {seed}: {ending.unfinished} never finished"


def test_a_job_that_was_tried_does_all_its_work_again():
    again: list[float] = []
    for seed in range(6):
        ending = tell(seed, policy="tries", faults=Faults(stop=(5.0, 5.0)))
        work, service = ending.tables.F[Job.WORK], ending.tables.F[Job.SERVICE]
        once = (work > 100.0) & (ending.tables.I[Job.RESTARTS] == 1)  # a job that is stopped for others works on while it saves
        again += (service - work)[once].tolist()
    assert len(again) > 5
    assert again == pytest.approx([100.0] * len(again))


def test_a_breach_would_be_noticed():
    """The executor is no yes-man: an order onto held devices is written down."""
    from gantline.engine.drivers.faulty import FaultyExecutor
    from gantline.engine.executor import Order, Verb

    executor = FaultyExecutor(np.array([100.0, 100.0]), Faults())
    executor.send(Order(Verb.START, 0, 1, (0, 1)), 0.0)
    executor.send(Order(Verb.START, 1, 1, (1,)), 1.0)
    executor.receive(2.0)
    assert executor.breaches == ["t=1: device 1 given to 1 while 0 holds it"]


def test_an_order_of_an_older_epoch_is_fenced_off():
    from gantline.engine.drivers.faulty import FaultyExecutor
    from gantline.engine.executor import Order, Verb

    executor = FaultyExecutor(np.array([100.0]), Faults())
    executor.send(Order(Verb.STOP, 0, 2), 0.0)
    executor.send(Order(Verb.START, 0, 1, (0,)), 1.0)
    assert [report.news.value for report in executor.receive(200.0) if report.epoch == 1] == []


@pytest.mark.parametrize("policy", ["fifo", "srtf", "smallest"])
@pytest.mark.parametrize("seed", range(12))
def test_without_faults_the_result_is_that_of_the_instant_executor(seed, policy):
    import random

    ending = tell(seed, faults=Faults(), policy=policy)
    rng = random.Random(seed)
    nodes, per = rng.randint(1, 5), rng.choice([1, 2, 4])
    trace = jobs_of(rng, nodes * per)
    placement = ending.loop.state.placement
    run = simulate(trace, f"{nodes}x{per}", policy, placement=placement)
    assert np.allclose(np.sort(ending.tables.F[Job.FINISH]), np.sort(run.tables.F[Job.FINISH])), (
        ending.tables.F[Job.FINISH],
        run.tables.F[Job.FINISH],
    )


@pytest.mark.parametrize("policy", ["las", "srtf", "afs", "gandiva"])
def test_no_allocation_is_without_length_or_devices(policy):
    """A grant that was withdrawn before it went out was never held, and is not among the allocations."""
    for seed in range(10):
        draw = np.random.default_rng(seed)
        jobs = [
            {"job": f"j{k}", "arrival": 30.0 * k, "gpus": int(draw.integers(1, 4)), "duration": float(draw.integers(10, 300))}
            for k in range(12)
        ]
        run = simulate(jobs, "1x4", policy, executor=f"faulty:{seed}", round=30.0 if seed % 2 else None)
        held = run.allocations
        assert (held["end"] > held["start"]).all(), f"seed {seed}"
        assert (held["devices"].list.len() == held["gpus"]).all()
        assert (held["gpus"] > 0).all(), f"seed {seed}"
        assert set(held["job"]) == {job["job"] for job in jobs}
