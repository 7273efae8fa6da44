"""Jobs that have ended before the service has looked at them: where they ran, and for how long, is recorded all the same."""

from __future__ import annotations

from pathlib import Path

from tests.live.pretend import Life, Machines, PretendRunner
from tests.live.specs import state, submit, until

from gantline.core.cluster import Cluster
from gantline.engine.executor import News, Order
from gantline.lab.report.service_run import run_of
from gantline.live.scheduler.scheduler import Scheduler
from gantline.live.store import SqlStore


class Instant(PretendRunner):
    """Jobs that end as soon as they begin: the scheduler receives both reports before it has time to look."""

    def _start(self, job: str, order: Order, now: float) -> Life:
        life = super()._start(job, order, now)
        self._tell(life)
        life.over, life.exit = News.FINISHED, 0
        return life


def test_a_job_that_is_over_at_once_has_held_its_devices(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    machines = Machines()
    machines.add("a")
    machines.add("b")
    scheduler = Scheduler(store, Instant(machines), "fifo")
    scheduler.start()
    jobs = [submit(scheduler, "true", gpus=2), submit(scheduler, "true", gpus=1)]
    until(lambda: [state(scheduler, job) for job in jobs] == ["succeeded"] * 2)
    scheduler.stop()
    events = store.events_of(jobs)
    run = run_of([(record, events[record["id"]]) for record in store.jobs()], Cluster(tuple(machines.nodes.values())))
    assert run.jobs["state"].to_list() == ["completed", "completed"]
    assert run.allocations["gpus"].to_list() == [2, 1]
    assert run.jobs["gpu_seconds"].min() > 0  # type: ignore[operator]
    assert run.allocations["start"].to_list() == run.jobs["first_start"].to_list()
    store.close()
