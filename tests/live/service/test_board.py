"""The board over HTTP: whole, compressed, by version; and its stream, until a client may listen no more."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.live.service.asking import becomes, cancel, over, started
from tests.live.service.board_mirror import Mirror, events_of
from tests.live.service.conftest import LIMIT, Running, until

from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def board(service: Running, token: str, **headers: str) -> httpx.Response:
    return httpx.get(f"{service.url}/v1/board", headers={**bearer(token), **headers}, trust_env=False)


def open_stream(service: Running, token: str, after: str) -> AbstractContextManager[httpx.Response]:
    given: dict[str, Any] = {"params": {"after": after}, "headers": bearer(token), "timeout": LIMIT, "trust_env": False}
    return httpx.stream("GET", f"{service.url}/v1/stream", **given)


@contextmanager
def stream(service: Running, token: str, after: str) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
    with open_stream(service, token, after) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events_of(answer)


def test_the_board_is_compressed_has_a_version_and_is_sent_once(service: Running, owner: Client) -> None:
    ids = owner.submit(["sleep", "600"], array="0-5")
    becomes(owner, ids[0])
    time.sleep(0.6)  # the board is looked at twice a second
    found = board(service, service.token)
    assert found.headers["content-encoding"] == "gzip"
    plain = board(service, service.token, **{"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert plain.json() == found.json()
    assert board(service, service.token, **{"If-None-Match": found.headers["etag"]}).status_code == 304
    mirror = Mirror(found.json())
    listed = {job["id"]: job for job in owner.jobs(id=ids)}
    for id in ids:
        row = mirror.job(id)
        shared = set(row) & set(listed[id])
        assert {name: row[name] for name in shared} == {name: listed[id][name] for name in shared}
        assert row["held"] == len(listed[id]["devices"])
    assert (mirror.head["busy"], mirror.head["running"], mirror.head["waiting"]) == (4, 4, 2)
    assert [mirror.rows[key][1] for key in mirror.queue] == ids[4:]
    assert mirror.nodes == {"name": ["cpu"], "type": ["cpu"], "first": [0], "count": [4]}
    cancel(owner, *ids)


def test_whoever_follows_the_stream_has_the_board(service: Running, owner: Client) -> None:
    mirror = Mirror(board(service, service.token).json())
    ids = owner.submit(["true"], array="0-3")
    with stream(service, service.token, mirror.version) as events:
        for name, body in events:
            if name == "changes":
                mirror.apply(body)
                if {mirror.job(id)["state"] for id in ids if any(row[1] == id for row in mirror.rows.values())} == {"succeeded"}:
                    break
    latest = until(lambda: (now := Mirror(board(service, service.token).json())).head["busy"] == 0 and now)
    if latest.version == mirror.version:
        assert mirror.same_as(latest)


def test_jobs_of_others_are_there_without_a_name(service: Running, owner: Client) -> None:
    id = started(owner, name="not yours")
    viewer = owner.create_token("looker", "viewer")["token"]
    time.sleep(0.6)
    text = board(service, viewer).text
    mirror = Mirror(board(service, viewer).json())
    assert "not yours" not in text
    assert mirror.job("-")["state"] == "running"
    assert [mirror.rows[key][1] for _, jobs in mirror.devices for key in jobs] == ["-"]
    with stream(service, viewer, mirror.version) as events:
        assert next(events)[0] == "beat"
        owner.cancel(id)
        for name, body in events:
            if name == "changes":
                mirror.apply(body)
                if not mirror.rows:
                    break
    over(owner, id)


@pytest.mark.parametrize("after", ["", "0.1", "nonsense", "ff" * 40])
def test_a_version_that_is_not_known_is_a_reset(service: Running, after: str) -> None:
    with stream(service, service.token, after) as events:
        ((name, body),) = list(events)
    assert name == "reset"
    assert body["why"]


def test_a_stream_ends_with_its_token_and_says_why(service: Running, owner: Client) -> None:
    made = owner.create_token("leaver", "operator")
    version = board(service, made["token"]).json()["version"]
    with stream(service, made["token"], version) as events:
        next(events)
        owner.change_token(made["id"], "viewer")
        last = [body for name, body in events if name == "end"][-1]
        assert last["again"]
        assert "viewer" in last["why"]
    with stream(service, made["token"], version) as events:
        next(events)
        owner.revoke_token(made["id"])
        last = [body for name, body in events if name == "end"][-1]
        assert not last["again"]
        assert "was revoked" in last["why"]
    assert board(service, made["token"]).status_code == 401


def test_a_stream_ends_when_its_token_expires(service: Running, owner: Client) -> None:
    version = board(service, service.token).json()["version"]
    for lifetime in (0.5, 2.5, 10.0, 40.0):  # a slow machine opens a stream too late for a short one
        short = owner.create_token("short", "viewer", lifetime=lifetime)
        with open_stream(service, short["token"], version) as answer:
            if answer.status_code == 200:
                assert "has expired" in [body for name, body in events_of(answer) if name == "end"][-1]["why"]
                return
    raise AssertionError("no stream was opened within the lifetime of its token")


def test_a_service_that_ends_says_so_and_the_next_one_resets(tmp_path: Path) -> None:
    options = Options(Home(tmp_path / "home"), devices="cpu:1")
    running = Running(options).start()
    version = board(running, running.token).json()["version"]
    with stream(running, running.token, version) as events:
        next(events)
        threading.Thread(target=running.stop, daemon=True).start()
        told = [body for name, body in events if name == "end"]
    assert [one["again"] for one in told] == [True]
    running.thread.join(LIMIT)
    again = Running(options).start()
    with stream(again, again.token, version) as events:
        assert [name for name, _ in events] == ["reset"]
    again.stop()


def test_a_parameter_that_a_route_does_not_know_is_refused(service: Running) -> None:
    for path, known in (("/v1/jobs?srot=gpus", "sort"), ("/v1/board?x=1", "none"), ("/v1/stream?since=1", "after")):
        found = httpx.get(service.url + path, headers=bearer(service.token), trust_env=False)
        assert found.status_code == 400
        assert "no parameter" in found.json()["error"]["what"]
        assert known in found.json()["error"]["fix"] or path.startswith("/v1/jobs")
