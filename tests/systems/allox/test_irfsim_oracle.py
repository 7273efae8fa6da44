"""The plain re-implementation of IRFsim ends every job in the second in which the original did."""

from __future__ import annotations

from functools import partial

import pytest
from tests.oracles.irfsim import CPU, GPU, Finished, IRFsim, Method, Task, load
from tests.oracles.irfsim_allox import allox
from tests.oracles.irfsim_methods import allox_plus, drf, drf_ext, drf_fifo, equal_share, sjf, srpt
from tests.systems.allox import reference

METHODS: dict[str, Method] = {
    "DRFFIFO": drf_fifo,
    "DRF": drf,
    "ES": equal_share,
    "DRFExt": drf_ext,
    "AlloX": allox,
    "SRPT": srpt,
}


def experiment(method: Method, *, profiling: bool = True) -> list[Finished]:
    tasks = load(reference.path("trace_experiment_40.csv"))
    return IRFsim(tasks, method, gpus=4, cores_per_node=20, nodes_per_gpu=2, alpha=0.5, profiling=profiling).run()


@pytest.mark.long
@pytest.mark.parametrize("name", METHODS)
def test_forty_jobs_end_when_the_original_ends_them(name: str) -> None:
    expected = {int(row["job_id"]): row for row in reference.rows("irfsim_per_job.csv") if row["method"] == name}
    found = {job.job: job for job in experiment(METHODS[name], profiling=name != "DRFFIFO")}
    assert {job: end.end for job, end in found.items()} == {job: float(row["end_s"]) for job, row in expected.items()}
    if name != "SRPT":  # which writes the start of a job's last stretch
        assert {job: end.start for job, end in found.items()} == {job: float(row["start_running_s"]) for job, row in expected.items()}


def test_equal_share_put_right_is_faster() -> None:
    jobs = experiment(partial(equal_share, repaired=True))
    assert sum(job.jct for job in jobs) / len(jobs) == pytest.approx(3673.05)
    assert max(job.end for job in jobs) == 11513


def one_job(number: int, arrival: float, cpu: float, gpu: float) -> Task:
    return Task(number, "queue0", arrival, (32.0, 1.0), (1.0, 2.0), [cpu, gpu], (cpu, gpu))


def test_a_fraction_of_a_second_holds_the_machine_for_a_whole_one() -> None:
    [job] = IRFsim([one_job(1, 0.0, 99.0, 12.3)], sjf, gpus=1, profiling=False).run()
    assert (job.end, job.device) == (13.0, GPU)


def test_two_events_are_needed_for_four_samples() -> None:
    [job] = IRFsim([one_job(1, 0.0, 500.0, 700.0)], sjf, gpus=4).run()
    # First CPU sample 0-5, first GPU sample 0-7; at 5 the queue shrank by two, and only the CPU one is looked at:
    # the round after steps over the GPU sample, which waits for the event at 7 and ends at 21.
    assert (job.start, job.device, job.end) == (21.0, CPU, 521.0)


def test_aged_jobs_go_first_in_allox_plus() -> None:
    holds_the_cpu = one_job(0, 0.0, 5e3, 9e3)
    jobs = [holds_the_cpu, one_job(1, 0.0, 9e3, 600.0), one_job(2, 1.0, 9e3, 800.0), one_job(3, 590.0, 9e3, 10.0)]
    ended = {job.job: job for job in IRFsim(jobs, allox_plus, gpus=1, profiling=False).run()}
    assert ended[2].start == 600.0
    assert ended[3].start == 1400.0
