"""The artifact's rules as functions on columns end the 40 jobs when the original ends them."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.oracles import irfsim_methods
from tests.oracles.irfsim import CPU, GPU, WHOLE_NODE_MEMORY, IRFsim, Method, load
from tests.policies.allox import columns_of, reference

from gantline.core.errors import RefusedError
from gantline.policies.allox import baselines
from gantline.policies.allox.artifact import event, fills, pairs
from gantline.policies.allox.artifact.queued import Queued, Start
from gantline.policies.allox.artifact.samples import start_samples
from gantline.policies.allox.artifact.sort import java_sorted
from gantline.policies.allox.fill import Misfit
from gantline.policies.allox.shares import exchange_rates, interchangeable
from gantline.policies.allox.ways import Ways

COMPUTE = np.array([True, True, False])
UNIT = np.array([CPU, GPU])


class WithColumns(IRFsim):
    """The simulation with its sample pass taken from the product."""

    def start_samples(self) -> bool:
        queued, tasks = columns_of.queued_of(self)
        starts, goes_on = start_samples(queued, np.array(self.free))
        columns_of.apply(self, starts, tasks)
        return goes_on


def drf_fifo(sim: IRFsim) -> None:
    for user in sim.users.values():
        for job in user.queue:
            job.memory = (WHOLE_NODE_MEMORY, WHOLE_NODE_MEMORY)
    ways, tasks = columns_of.ways_of(sim)
    start_ways(sim, ways.only(ways.kind == GPU), tasks, partial(baselines.drf, order="fifo", misfit=Misfit.STOP))


def drf(sim: IRFsim) -> None:
    for user in sim.users.values():
        user.queue.sort(key=irfsim_methods.by_min_time)
    ways, tasks = columns_of.ways_of(sim)
    start_ways(sim, ways.only(ways.fastest(prefer=GPU)), tasks, partial(baselines.drf, misfit=Misfit.STOP))


def start_ways(sim: IRFsim, ways: Ways, tasks: columns_of.Tasks, method: object) -> None:
    found = method(ways, columns_of.pool_of(sim))  # type: ignore[operator]
    columns_of.apply(sim, [Start(int(ways.job[w]), int(ways.kind[w])) for w in found], tasks)


def equal_share(sim: IRFsim) -> None:
    queued, tasks = columns_of.queued_of(sim)
    starts, order = fills.equal_share(queued, columns_of.pool_of(sim))
    columns_of.apply(sim, starts, tasks, order)


def drf_ext(sim: IRFsim) -> None:
    queued, tasks = columns_of.queued_of(sim)
    count = len(sim.tasks)
    true = Ways(
        np.zeros(count, dtype=np.int64),
        np.repeat(np.arange(count), 2),
        np.tile([CPU, GPU], count),
        np.array([task.true for task in sim.tasks]).reshape(-1),
        columns_of.needs_of(sim, sim.tasks).reshape(-1, 3),
    )
    worth = interchangeable(exchange_rates(true, UNIT, CPU, start=32.0), COMPUTE)
    if not tasks:
        return
    starts, order = fills.drf_extended(queued, columns_of.pool_of(sim), worth)
    columns_of.apply(sim, starts, tasks, order)


def srpt(sim: IRFsim) -> None:
    for task in [task for task in sim.running if task.sample is None]:
        sim.preempt(task)
    ways, tasks = columns_of.ways_of(sim, [job for job, device in irfsim_methods.pairs(sim) if device == CPU])
    start_ways(sim, ways, tasks, lambda given, pool: baselines.srpt(given, pool, given.time, by_total=True))


def allox(sim: IRFsim) -> None:
    queued, tasks = columns_of.queued_of(sim)
    kind = np.array([GPU] * sim.gpus + [CPU] * sim.nodes)
    booked = np.array([np.nan if until is None else until for until in sim.busy_until])
    samples = [sum(task.sample == device for task in sim.running) for device in (CPU, GPU)]
    cluster = event.Cluster(kind, booked, (samples[CPU], samples[GPU]), np.array(sim.free))
    gain = columns_of.true_gains(sim, tasks)
    starts, booked, _ = event.allox(queued, cluster, columns_of.scores_of(sim), gain, sim.now, sim.alpha)
    columns_of.apply(sim, starts, tasks)
    sim.busy_until = [None if np.isnan(until) else float(until) for until in booked]


METHODS: dict[str, Method] = {
    "DRFFIFO": drf_fifo,
    "DRF": drf,
    "ES": equal_share,
    "DRFExt": drf_ext,
    "SRPT": srpt,
    "AlloX": allox,
}


@pytest.mark.parametrize("name", METHODS)
def test_forty_jobs_end_when_the_original_ends_them(name: str) -> None:
    expected = {int(row["job_id"]): float(row["end_s"]) for row in reference.rows("irfsim_per_job.csv") if row["method"] == name}
    tasks = load(reference.path("trace_experiment_40.csv"))
    simulation = WithColumns(tasks, METHODS[name], gpus=4, cores_per_node=20, nodes_per_gpu=2, alpha=0.5, profiling=name != "DRFFIFO")
    assert {job.job: job.end for job in simulation.run()} == expected


def allox_plus(sim: IRFsim) -> None:
    queued, tasks = columns_of.queued_of(sim)
    gain = columns_of.true_gains(sim, tasks)
    starts, _ = pairs.allox_plus(queued, np.array(sim.free), columns_of.scores_of(sim), gain, sim.now)
    columns_of.apply(sim, starts, tasks)


@pytest.mark.parametrize(
    ("method", "plain", "gpus"),
    [
        (equal_share, irfsim_methods.equal_share, 10),  # with fewer GPUs than users it runs nothing
        (drf_ext, irfsim_methods.drf_ext, 4),
        (allox_plus, irfsim_methods.allox_plus, 4),
        (srpt, irfsim_methods.srpt, 4),
    ],
)
def test_two_hundred_jobs_end_as_in_the_plain_simulation(method: Method, plain: Method, gpus: int) -> None:
    trace = reference.path("trace_google_200.csv")
    found = {job.job: job.end for job in WithColumns(load(trace), method, gpus=gpus).run()}
    assert found == {job.job: job.end for job in IRFsim(load(trace), plain, gpus=gpus).run()}


def test_java_order_of_a_consistent_comparison_is_any_stable_order() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 31, 32, 33, 64, 200, 700):
        for values in (3, 40, 10_000):
            items = [(int(value), place) for place, value in enumerate(rng.integers(0, values, size))]
            items[: size // 2] = sorted(items[: size // 2])
            assert java_sorted(items, lambda a, b: a[0] - b[0]) == sorted(items, key=lambda item: item[0])


def test_a_job_that_lacks_memory_is_refused_where_the_original_hangs() -> None:
    queued = Queued(
        np.array([4]), np.array([0]), np.zeros(1), np.array([[9.0, 5.0]]), np.array([[[20.0, 0, 1], [0, 1.0, 99.0]]]), np.array([-1])
    )
    cluster = event.Cluster(np.array([GPU]), np.array([np.nan]), (0, 0), np.array([0.0, 1.0, 64.0]))
    with pytest.raises(RefusedError, match="job 4 lacks memory"):
        event.allox(queued, cluster, np.zeros(1), np.zeros((1, 2)), 0.0, 1.0)
