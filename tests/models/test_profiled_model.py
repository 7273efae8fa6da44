"""A model made of profiles: starts cost what was measured, and jobs that share a device are as slow as the pair was."""

from __future__ import annotations

import pytest
from tests.jobs import job_row

from gantline import Assignment, Mode, OrderPolicy, Plan, Policy, Snapshot, parse_cluster, simulate
from gantline.core.arrays import Floats
from gantline.core.errors import RefusedError
from gantline.models.profiles.bundle import Bundle, Pairing, Profile, SampledLine, Speed
from gantline.models.profiles.profiled_model import ProfiledModel


class _Together(Policy):
    """Everybody on the first device at once."""

    name = "together"

    def decide(self, snapshot: Snapshot) -> Plan:
        return Plan.assign([Assignment(job, devices=(0,), group=0, mode=Mode.SPACE, size=1) for job in range(len(snapshot.jobs))])


def _bundle(**stops: float) -> Bundle:
    def profile(name: str, startup: float, pairs: dict[tuple[str, int, str], Pairing]) -> Profile:
        return Profile(name, alone={("h200", 1): Speed(SampledLine(startup, 0.1, 0.1, 0.1), **stops)}, pairs=pairs)

    return Bundle({"a": profile("a", 5.0, {("h200", 1, "b"): Pairing(0.8)}), "b": profile("b", 3.0, {("h200", 1, "a"): Pairing(0.5)})})


def _rows(*jobs: tuple[str, float, float]) -> list[dict[str, object]]:
    return [job_row(str(k), 1, work, at=at, model=model) for k, (model, at, work) in enumerate(jobs)]


def _times(
    policy: Policy | str, rows: list[dict[str, object]], added: float = 0.0, executor: str = "instant", **stops: float
) -> list[float]:
    model = ProfiledModel(_bundle(**stops), added)
    run = simulate(rows, parse_cluster("h200:1x1"), policy, performance=model, executor=executor, min_run=0.0, grace=0.0, turn=0.0)
    return [row["jct"] for row in run.jobs.sort("job").iter_rows(named=True)]


def test_a_start_costs_what_was_measured_and_what_the_runner_adds() -> None:
    rows = _rows(("a", 0.0, 100.0), ("b", 0.0, 10.0), ("unknown", 0.0, 7.0))
    assert _times("fifo", rows) == pytest.approx([105.0, 118.0, 125.0])
    assert _times("fifo", rows, added=1.0) == pytest.approx([106.0, 120.0, 127.0])


def test_a_resume_costs_what_a_start_from_a_checkpoint_took() -> None:
    rows = _rows(("a", 0.0, 100.0), ("b", 50.0, 10.0))
    # 45 done when b comes; b takes 13; a takes 7 to be back and does the other 55
    assert _times("srtf", rows) == pytest.approx([50 + 13 + 5 + 55, 13.0])  # nobody looked: as any start
    assert _times("srtf", rows, resume=7.0) == pytest.approx([50 + 13 + 7 + 55, 13.0])


def test_who_comes_next_waits_until_the_one_before_has_saved_and_left() -> None:
    rows = _rows(("a", 0.0, 100.0), ("b", 50.0, 10.0))
    assert _times("srtf", rows, executor="measured", leave=2.0) == pytest.approx([50 + 2 + 13 + 5 + 55, 2 + 13.0])


def test_by_default_it_has_the_minimum_run_of_a_service_first() -> None:
    rows, model = _rows(("a", 0.0, 100.0), ("b", 50.0, 10.0)), ProfiledModel(_bundle(leave=2.0))
    run = simulate(rows, parse_cluster("h200:1x1"), "srtf", performance=model, executor="measured")
    assert run.jobs.sort("job")["jct"].to_list() == pytest.approx([60 + 2 + 13 + 5 + 45, 10 + 2 + 13.0])


def test_who_is_told_to_stop_while_it_starts_hears_of_it_when_that_is_over() -> None:
    rows = _rows(("a", 0.0, 100.0), ("b", 1.0, 10.0))
    # a is up at 5 and gone at 7, with nothing done; b has its devices from then on
    assert _times("srtf", rows, executor="measured", leave=2.0) == pytest.approx([7 + 13 + 5 + 100, 6 + 13.0])


class _LaterThanSaid(ProfiledModel):
    """Every start takes three seconds more than the scheduler is told."""

    does_otherwise = True

    def takes(self, job: str, expected: float) -> float:
        return expected + 3.0


def test_a_start_may_take_longer_than_the_scheduler_is_told() -> None:
    """Live it is told the profile's start as well, and counts by it what a job has received."""
    seen: list[list[float]] = []

    class OneByOne(OrderPolicy):
        name = "one-by-one"

        def key(self, snapshot: Snapshot) -> Floats:
            seen.append(snapshot.jobs.attained.tolist())
            return snapshot.jobs.arrival

    rows, ends = _rows(("a", 0.0, 10.0), ("b", 8.0, 10.0)), []
    for model in (ProfiledModel(_bundle()), _LaterThanSaid(_bundle())):
        seen.clear()
        run = simulate(rows, parse_cluster("h200:1x1"), OneByOne(), performance=model, executor="measured", turn=0.0)
        ends.append(run.jobs.sort("job")["finish"].to_list()[0])
        assert [3.0, 0.0] in seen  # when the second comes, the first has run for eight seconds less a start of five
    assert ends == pytest.approx([15.0, 18.0])


@pytest.mark.parametrize("executor", ["instant", "acknowledged", "faulty"])
def test_an_executor_that_would_not_do_otherwise_is_refused(executor: str) -> None:
    with pytest.raises(RefusedError, match="_LaterThanSaid says what gangs do otherwise"):
        simulate(_rows(("a", 0.0, 1.0)), parse_cluster("h200:1x1"), "fifo", performance=_LaterThanSaid(_bundle()), executor=executor)


class _HalfAsFast(ProfiledModel):
    """Every gang is half as fast as the scheduler is told."""

    does_otherwise = True

    def goes(self, job: str, model: str, type: str, gpus: int, expected: float) -> float:
        return expected / 2.0


def test_a_gang_may_be_slower_than_the_scheduler_is_told() -> None:
    """The second job displaces the first, of which the scheduler believes five seconds done where half of that is."""
    left: list[float] = []

    class LastComeFirst(OrderPolicy):
        name = "last-come-first"

        def key(self, snapshot: Snapshot) -> Floats:
            left.append(float(snapshot.jobs.remaining[0]))
            return -snapshot.jobs.arrival

    rows, how = _rows(("a", 0.0, 10.0), ("b", 10.0, 4.0)), {"min_run": 0.0, "grace": 0.0, "turn": 0.0}
    run = simulate(rows, parse_cluster("h200:1x1"), LastComeFirst(), performance=_HalfAsFast(_bundle()), executor="measured", **how)
    first, second = run.jobs.sort("job")["finish"].to_list()
    assert second == pytest.approx(10.0 + 3.0 + 4.0 * 2.0)
    assert left[-1] == pytest.approx(5.0)  # as believed, when the second has ended
    assert first == pytest.approx(second + 5.0 + 7.5 * 2.0)  # as it is


def test_a_pair_is_as_slow_as_it_was_measured() -> None:
    first, second = _times(_Together(), _rows(("a", 0.0, 100.0), ("b", 0.0, 100.0)))
    # b starts after 3 s, a after 5 s: both share from the beginning; a goes at 0.8 and ends first, b at 0.5 until then
    assert first == pytest.approx(5 + 100 / 0.8)
    done = (first - 3) * 0.5
    assert second == pytest.approx(first + (100 - done))


def test_a_pair_that_nobody_measured_takes_turns() -> None:
    first, second = _times(_Together(), _rows(("a", 0.0, 100.0), ("a", 0.0, 100.0)))
    assert first == second == pytest.approx(205.0)


def _together(crowded: float, **samples: tuple[float, ...]) -> Bundle:
    speed = Speed(SampledLine(0.0, 1.0, 1.0, 1.0), crowded=crowded, leave=1.0, samples=samples)
    return Bundle({"a": Profile("a", alone={("h200", 1): speed, ("h200", 2): speed})})


def _ends(bundle: Bundle, rows: list[dict[str, object]], draw: int | None = None, **how: object) -> list[float]:
    run = simulate(rows, parse_cluster("h200:1x4"), "fifo", performance=ProfiledModel(bundle, draw=draw), **how)
    return run.jobs.sort("job")["jct"].to_list()


@pytest.mark.parametrize("executor", ["instant", "acknowledged", "measured"])
def test_a_job_is_slower_the_more_of_the_other_devices_are_busy_and_faster_again_when_they_are_free(executor: str) -> None:
    rows = _rows(("a", 0.0, 100.0), ("a", 0.0, 30.0))
    # alone on a node of four a job goes at 1, beside a full node at 0.7: beside one of three others at 0.9
    assert _ends(_together(0.7), rows, executor=executor) == pytest.approx([30 / 0.9 + 70, 30 / 0.9])
    assert _ends(_together(0.7), _rows(*[("a", 0.0, 70.0)] * 4), executor=executor) == pytest.approx([100.0] * 4)


def test_the_devices_of_its_own_gang_do_not_count() -> None:
    rows = [{**row, "gpus": 2} for row in _rows(("a", 0.0, 70.0), ("a", 0.0, 70.0))]
    assert _ends(_together(0.7), rows[:1]) == pytest.approx([70.0])
    assert _ends(_together(0.7), rows) == pytest.approx([100.0, 100.0])


@pytest.mark.parametrize("executor", ["instant", "acknowledged", "measured"])
def test_gangs_that_start_at_once_on_a_node_delay_each_other(executor: str) -> None:
    speed = Speed(SampledLine(2.0, 1.0, 1.0, 1.0), together=0.5)
    bundle = Bundle({"a": Profile("a", alone={("h200", 1): speed, ("h200", 2): speed})})
    rows = [{**row, "gpus": gpus} for row, gpus in zip(_rows(("a", 0.0, 10.0), ("a", 0.0, 10.0), ("a", 5.0, 10.0)), (2, 1, 1))]
    # beside one other device, beside two, and five seconds later beside none that starts
    assert _ends(bundle, rows, executor=executor) == pytest.approx([12.5, 13.0, 12.0])
    both = simulate(rows[:2], parse_cluster("h200:1x2,h200:1x1"), "fifo", performance=ProfiledModel(bundle), executor=executor)
    assert both.jobs["jct"].to_list() == pytest.approx([12.0, 12.0])  # on nodes of their own


def test_slices_of_another_size_count_by_their_part_of_the_gpu() -> None:
    speed = Speed(SampledLine(0.0, 1.0, 1.0, 1.0), crowded=0.5)
    bundle = Bundle({"a": Profile("a", alone={("h200.25pct", 1): speed}), "b": Profile("b", alone={("h200.50pct", 1): speed})})
    rows = [
        job_row("a", model="a", options="h200.25pct:1=100"),
        job_row("b", model="b", options="h200.50pct:1=100"),
    ]
    run = simulate(rows, parse_cluster("h200:2x1/25%x2+50%x1"), "fifo", performance=ProfiledModel(bundle))
    a, b = run.jobs.sort("job")["jct"].to_list()
    # each is on the first GPU: half of the three quarters beside a quarter is busy, and a quarter of the half beside a half
    rate_a, rate_b = 1 - 0.5 * (50 / 75), 1 - 0.5 * (25 / 50)
    assert b == pytest.approx(100 / rate_b)
    assert a == pytest.approx(b + (100 - b * rate_a))


def test_a_draw_takes_times_from_what_was_measured_and_is_the_same_again() -> None:
    bundle, rows = _together(1.0, speed=(0.5, 2.0)), _rows(("a", 0.0, 60.0), ("a", 0.0, 60.0))
    possible = {60.0 / (mean * own) for mean in (0.5, 1.25, 2.0) for own in (0.5, 2.0)}  # a mean of two measurements, and one of them
    drawn = [_ends(bundle, rows, draw) for draw in range(12)]
    assert all(min(abs(end - one) for one in possible) < 1e-6 for ends in drawn for end in ends)
    assert len({tuple(ends) for ends in drawn}) > 3
    assert any(one != other for one, other in drawn)  # two jobs of a kind are drawn apart
    assert drawn == [_ends(bundle, rows, draw) for draw in range(12)]
    assert _ends(bundle, rows) == pytest.approx([60.0, 60.0])
