"""Gangs that share devices finish when a plain account of their speeds says, on both clocks: with groups and without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import FEWER
from tests.jobs import by_job, job_row
from tests.oracles.plain_sharing import SharingGang, share_plainly
from tests.probes.scenario import each

from gantline import Mode
from gantline.simulator.simulate import simulate

DEVICES = 4


@st.composite
def scenes(draw: st.DrawFn, grouped: bool) -> list[SharingGang]:
    """Up to seven gangs. Those of one group have the same devices; without groups devices overlap in any way."""
    found = []
    for number in range(draw(st.integers(1, 7))):
        arrival = 10.0 * draw(st.integers(0, 20)) + number  # no two at once
        work, fraction = draw(st.sampled_from([13.0, 50.0, 107.0])), draw(st.sampled_from([1.0, 0.5, 0.25]))
        if grouped:
            group = draw(st.integers(0, 3))
            devices = frozenset({group, (group + 1) % DEVICES}) if group % 2 else frozenset({group})
        else:
            group, devices = -1, frozenset(draw(st.sets(st.integers(0, DEVICES - 1), min_size=1, max_size=3)))
        found.append(SharingGang(f"j{number}", arrival, work, devices, fraction, group))
    return sorted(found, key=lambda gang: gang.arrival)


def finishes(gangs: list[SharingGang], executor: str) -> dict[str, float]:
    jobs = [job_row(gang.name, len(gang.devices), gang.work, at=gang.arrival) for gang in gangs]
    terms = {gang.name: {"devices": tuple(sorted(gang.devices)), "fraction": gang.fraction, "group": gang.group} for gang in gangs}
    as_drawn = each(lambda snapshot, k: {"mode": Mode.SPACE, **terms[snapshot.jobs.ids[k]]})
    run = simulate(jobs, f"1x{DEVICES}", as_drawn, executor=executor)
    return by_job(run, "finish")


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
@given(gangs=scenes(grouped=False))
@FEWER
def test_gangs_on_any_devices_of_others(executor: str, gangs: list[SharingGang]) -> None:
    share_plainly(gangs)
    assert finishes(gangs, executor) == pytest.approx({gang.name: gang.finish for gang in gangs}, abs=1e-5)


@pytest.mark.parametrize("executor", ["instant", "acknowledged"])
@given(gangs=scenes(grouped=True))
@FEWER
def test_groups_share_with_no_other_group(executor: str, gangs: list[SharingGang]) -> None:
    share_plainly(gangs)
    assert finishes(gangs, executor) == pytest.approx({gang.name: gang.finish for gang in gangs}, abs=1e-5)
