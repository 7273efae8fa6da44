"""What tests ask of a service's jobs, and wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.waiting import LIMIT, until

from gantline.live.service.client import Client


def becomes(client: Client, job: str, state: str = "running") -> None:
    until(lambda: client.job(job)["state"] == state, f"job {job} is {state}")


def started(client: Client, command: Sequence[str] = ("sleep", "600"), **more: Any) -> str:
    """A job that runs."""
    (job,) = client.submit(list(command), **more)
    becomes(client, job)
    return job


def over(client: Client, *jobs: str) -> list[dict[str, Any]]:
    """Jobs that have ended."""
    return client.wait(*jobs, timeout=LIMIT)


def succeed(client: Client, *jobs: str) -> None:
    """Wait for jobs, of which none may end otherwise."""
    assert [job["state"] for job in over(client, *jobs)] == ["succeeded"] * len(jobs)


def cancel(client: Client, *jobs: str) -> None:
    """Cancel jobs that have not ended, and wait for their end."""
    client.cancel(*jobs)
    over(client, *jobs)
