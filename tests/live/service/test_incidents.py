"""What people must see is where they look: a job that starts again and again without progress."""

from __future__ import annotations

from tests.live.service.asking import cancel
from tests.live.service.conftest import Running, until


def test_a_job_that_gets_nowhere_is_in_status_events_metrics_and_on_the_board(service: Running) -> None:
    client = service.client()
    (job,) = client.submit(["sleep", "600"])
    for epoch in (1, 2, 3):
        until(lambda epoch=epoch: client.job(job)["state"] == "running" and client.job(job)["epoch"] == epoch)
        assert not client.status()["incidents"]
        client.requeue(job)
    until(lambda: any(f"job {job} has restarted 3 times" in one for one in client.status()["incidents"]))
    assert [event["event"] for event in client.events(job=job)].count("restarts") == 1
    assert "\ngantline_jobs_stuck 1.0\n" in client.metrics()
    until(lambda: client.get("/v1/board")["head"]["stuck"] == 1)
    cancel(client, job)
    until(lambda: client.get("/v1/board")["head"]["stuck"] == 0)
