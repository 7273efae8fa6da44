"""Jobs on a Ray cluster that grow and shrink while they train: on their node without a stop, to other nodes by a stop and a start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.specs import ended, must_succeed, submit, until, until_running
from tests.live.test_change_of_ranks import BATCH, POLICY, SAMPLES, gang, lines, resize, sizes
from tests.system.ray_cluster import RayCluster

from gantline.live.runners.ray.runner import RayRunner
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore

EPOCHS = 60


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[RayCluster]:
    cluster = RayCluster(2, cpus=3)
    yield cluster
    cluster.stop()


class Service:
    """A scheduler on the cluster that can be replaced by the next one."""

    def __init__(self, home: Path, address: str) -> None:
        self.home, self.address = home, address
        self.store = SqlStore.open(home / "gantline.sqlite")
        self.start()

    def start(self) -> None:
        self.scheduler = Scheduler(self.store, RayRunner(self.home, "cpu", address=self.address), POLICY)
        self.scheduler.start()

    def incarnations(self, job: str) -> list[str]:
        return sorted(path.name for path in (self.home / "jobs" / job).glob("[0-9]*"))


@pytest.fixture
def service(tmp_path: Path, ray_cluster: RayCluster) -> Iterator[Service]:
    found = Service(tmp_path, ray_cluster.address)
    yield found
    found.scheduler.stop()
    found.store.close()


def every_sample_once(seen: Path) -> None:
    """Every step was made once, and every sample seen once per epoch."""
    told = lines(seen)
    assert [step for step, _ in sorted({(line.step, line.world) for line in told})] == list(range(EPOCHS * SAMPLES // BATCH))
    assert Counter(one for line in told for one in line.samples) == dict.fromkeys(range(SAMPLES), EPOCHS)


def test_a_gang_grows_and_shrinks_on_its_node_and_no_rank_starts_again(tmp_path: Path, service: Service) -> None:
    """One rank, three, two; between them the service is replaced. The device that is given up is used by another job."""
    seen, scheduler = tmp_path / "seen", service.scheduler
    (job,) = scheduler.submit(gang(seen, 1, epochs=EPOCHS))
    until(lambda: lines(seen), "the first step")
    resize(scheduler, job, 3)
    until(lambda: 3 in sizes(seen), "three ranks")
    until_running(scheduler, job)
    scheduler.stop()
    service.start()
    scheduler = service.scheduler
    assert len(scheduler.view().jobs[job].devices) == 3, "it is adopted with the devices that it has now"
    resize(scheduler, job, 2)
    until(lambda: 2 in sizes(seen), "two ranks")
    other = submit(scheduler, "true", 4, processes=0)
    assert ended(scheduler, other) == ["succeeded"], "the device that was given up is used"
    must_succeed(scheduler, job)
    assert service.incarnations(job) == ["1"]
    assert list(dict.fromkeys(sizes(seen))) == [1, 3, 2]
    assert len({line.pid for line in lines(seen)}) == 3
    every_sample_once(seen)


def test_a_gang_that_is_given_devices_of_another_node_is_stopped_and_goes_on_there(tmp_path: Path, service: Service) -> None:
    seen, scheduler = tmp_path / "seen", service.scheduler
    (job,) = scheduler.submit(gang(seen, 2, epochs=EPOCHS))
    until(lambda: lines(seen), "the first step")
    resize(scheduler, job, 4)
    until(lambda: 4 in sizes(seen), "four ranks")
    must_succeed(scheduler, job)
    assert len(service.incarnations(job)) == 2
    every_sample_once(seen)


def test_a_newcomer_that_fails_leaves_the_gang_as_it_is(tmp_path: Path, service: Service) -> None:
    seen, scheduler = tmp_path / "seen", service.scheduler
    (job,) = scheduler.submit(gang(seen, 2, epochs=EPOCHS, setup='[ "$RANK" != 2 ] || exit 9;'))
    until(lambda: lines(seen), "the first step")
    resize(scheduler, job, 3)
    until(lambda: scheduler.view().jobs[job].max_gpus == 2, "it stays as it is")
    other = submit(scheduler, "true", 4, processes=0)
    assert ended(scheduler, other, job) == ["succeeded"] * 2, "what it was given for nothing is free"
    assert (service.incarnations(job), set(sizes(seen))) == (["1"], {2})
    every_sample_once(seen)
