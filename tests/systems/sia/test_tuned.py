"""Themis and Shockwave on tuned jobs in the clock of Sia's simulator."""

from __future__ import annotations

import pytest
from tests.systems.sia.worlds import held, job, profiles, run

from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import RefusedError
from gantline.systems.sia.imitation.drive import classes_of, read_jobs
from gantline.systems.sia.imitation.jobs import Fitter
from gantline.systems.sia.imitation.schedulers import EpochTimes
from gantline.traces.trace import Trace

POLICIES = ("gavel.finish_time_fairness", "shockwave")


@pytest.mark.parametrize("policy", POLICIES)
def test_equal_jobs_take_turns_and_end_together(policy: str) -> None:
    jobs = [job(name, gpus=4, batch_size=128) for name in ("a", "b", "c")]
    found = run(jobs, cluster="slow:1x4", policy=policy)
    spells = held(found)
    assert {gpus for each in spells.values() for *_, gpus in each} == {4}
    ends = sorted(found.jobs["finish"].to_list())
    alone = run(jobs[:1], cluster="slow:1x4", policy=policy).jobs["finish"][0]
    assert min(len(each) for each in spells.values()) > 1
    assert ends[0] > 1.2 * alone  # nobody is served to the end while the others wait
    assert 2.5 * alone < ends[-1] < 6.5 * alone  # turns of a minute cost half a minute each


@pytest.mark.parametrize("policy", POLICIES)
def test_nobody_waits_beside_gpus_that_it_could_use(policy: str) -> None:
    jobs = [job("wide", gpus=4, batch_size=128), *(job(f"slim{k}", gpus=1, batch_size=32) for k in range(4))]
    found = run(jobs, cluster="slow:2x4", policy=policy)
    assert found.jobs["first_start"].to_list() == [60.0] * 5
    assert found.jobs["restarts"].to_list() == [0] * 5


def test_what_is_left_is_counted_in_seconds_on_its_own_gpus() -> None:
    classes = classes_of(parse_cluster("slow:2x4"))
    (one,) = read_jobs(Trace.from_records([job("a", gpus=1, batch_size=32)]), profiles(), classes, Fitter("artifact"), 30.0, tuned=True)
    times = EpochTimes(classes)
    assert times.of(one).tolist() == pytest.approx([200.0] * 4)  # a hundred steps of two seconds each
    one.epoch, one.progress = 1, 150.0
    assert times.left(one) == pytest.approx(500.0)


def test_several_types_are_refused() -> None:
    with pytest.raises(RefusedError, match="know one kind of nodes"):
        run([job("a")], policy="shockwave")
