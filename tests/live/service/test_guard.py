"""What never reaches a route: other hosts, other origins, large bodies; and what a path cannot do."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import trustme
import uvicorn
from tests.live.service.conftest import LIMIT, Running, until

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from gantline.live.runners.local.output import KeptJobs
from gantline.live.runners.local.runner import LocalRunner
from gantline.live.service import guard
from gantline.live.service import home as local_socket
from gantline.live.service.client import Client
from gantline.live.service.connections import Peer, bounded, peer_of
from gantline.live.service.guard import LARGEST_BODY
from gantline.live.service.home import Home, Options, listen_on_unix_socket, socket_of
from gantline.live.service.job_output import read_log
from gantline.live.service.serve import _listen, serve


def raw(service: Running, text: str) -> str:
    """What the service answers to bytes that no decent client would send."""
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(text.replace("\n", "\r\n").encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while piece := connection.recv(65536):
            found += piece
    return found.decode("latin-1")


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "127.0.0.1.evil.example", "", "[::2]", "[::1]evil.com", "[::1]:80:evil.com", "127.0.0.1:80:evil.com", "127.0.0.1:",
        "127.0.0.1:evil.com", "127.0.0.1@evil.com", "evil.com:80@127.0.0.1", "127.0.0.1/evil.com", "[::1", "localhost:999999",
    ],
)  # fmt: skip
def test_another_host_is_refused(service: Running, host: str) -> None:
    told = service.ask("/v1/status", headers={"Host": host})
    assert told.status_code == 409
    assert "not called that" in told.text


def test_a_page_from_elsewhere_is_refused(service: Running) -> None:
    assert service.ask("/v1/status", headers={"Origin": "https://evil.example"}).status_code == 409
    assert service.ask("/v1/status", headers={"Origin": service.url}).status_code == 200


def test_large_bodies_are_refused_whatever_they_say_of_themselves(service: Running) -> None:
    head = f"POST /v1/jobs HTTP/1.1\nHost: localhost\nAuthorization: Bearer {service.token}\nContent-Type: application/json\n"
    assert " 413 " in raw(service, f"{head}Content-Length: {LARGEST_BODY + 1}\n\n{{}}")
    assert " 4" in raw(service, f"{head}Content-Length: -1\n\n{{}}")
    piece = "x" * 60_000
    chunks = "".join(f"{len(piece):x}\n{piece}\n" for _ in range(LARGEST_BODY // len(piece) + 2))
    assert " 413 " in raw(service, f"{head}Transfer-Encoding: chunked\n\n{chunks}0\n\n")
    assert service.client().jobs() == []


@pytest.mark.parametrize(
    "body", ["", "[]", "{", "null", '"x"', "[" * 50_000, '{"run": 3}', '{"run": ["a"], "evil": 1}', '{"run": ["a\\u0000"]}']
)
def test_what_is_no_specification_is_refused_with_a_message(service: Running, body: str) -> None:
    told = service.ask("/v1/jobs", method="POST", content=body)
    assert told.status_code == 400
    assert told.json()["error"]["what"]
    assert service.client().jobs() == []


def test_answers_tell_browsers_to_do_nothing_with_them(service: Running) -> None:
    headers = service.ask("/v1/status").headers
    assert headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/v1/jobs/..%2f..%2ftoken/logs", "/v1/jobs/../../token/logs", "/v1/jobs/%2e%2e/logs", "/v1/jobs/%2Fetc%2Fpasswd/logs",
        "/v1/jobs/1%00/logs", "/v1/queues/..%2f..%2ftoken", "/v1/jobs/1/logs?epoch=../..", "/v1/jobs/1/logs?rank=-1",
    ],
)  # fmt: skip
def test_no_path_leaves_its_place(service: Running, path: str) -> None:
    told = service.ask(path)
    assert told.status_code in (400, 404, 405)
    assert service.token not in told.text


def test_an_id_that_is_none_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "log").write_text("secret", encoding="utf-8")
    for id in ("..", "../jobs", "/", "", "1/../..", "1_", "a"):
        assert KeptJobs(tmp_path).incarnations(id) == []
        assert read_log(KeptJobs(tmp_path), id)["text"] == ""


def test_files_of_the_home_are_its_owners_alone(service: Running) -> None:
    assert stat.S_IMODE(service.home.stat().st_mode) == 0o700
    for name in ("token", "address.json", "secret", "gantline.sqlite", "gantline.sqlite-wal", "service.log"):
        assert stat.S_IMODE((service.home / name).stat().st_mode) == 0o600, name


def test_a_second_service_on_one_home_is_refused(service: Running) -> None:
    with pytest.raises(RefusedError, match="another service"):
        serve(Options(Home(service.home)))
    assert service.client().status()["deciding"]


def test_other_machines_are_let_in_only_with_tls(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="other machines"):
        serve(Options(Home(tmp_path / "h"), host="0.0.0.0"))
    with pytest.raises(UsageError, match="certificate needs its key"):
        serve(Options(Home(tmp_path / "h"), host="0.0.0.0", certificate=tmp_path / "c.pem"))
    assert not (tmp_path / "h").exists()


def certificate(folder: Path) -> Path:
    """A certificate for this machine with the authority that signed it, and its key."""
    folder.mkdir()
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    chain = b"".join(part.bytes() for part in (*issued.cert_chain_pems, authority.cert_pem))
    (folder / "cert.pem").write_bytes(chain)
    (folder / "key.pem").write_bytes(issued.private_key_pem.bytes())
    return folder


def test_with_tls_everything_is_encrypted_and_jobs_trust_it(tmp_path: Path) -> None:
    folder = certificate(tmp_path / "tls")
    options = Options(Home(tmp_path / "h"), devices="cpu:1", certificate=folder / "cert.pem", key=folder / "key.pem")
    running = Running(options).start()
    assert running.url.startswith("https://127.0.0.1:")
    with Client(home=tmp_path / "h") as client:
        report = (
            "import os, time\nfrom gantline.train.wire import Wire\ne = os.environ\n"
            "wire = Wire(e['GANTLINE_URL'], e['GANTLINE_JOB_TOKEN'], e['GANTLINE_JOB_ID'], int(e['GANTLINE_EPOCH']))\n"
            "while True:\n    wire.report({'done': 3, 'total': 4}, urgent=True)\n    time.sleep(0.2)\n"
        )
        (id,) = client.submit([sys.executable, "-c", report])
        until(lambda: client.job(id)["progress"].get("done") == 3, "a report over TLS")
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            Client(running.url, running.token).status()
        client.shutdown()
    running.thread.join(120)
    assert running.code == 0
    with pytest.raises(NotFoundError, match="no such file"):
        Options(Home(tmp_path / "h"), certificate=folder / "none.pem", key=folder / "key.pem").check()


def test_a_home_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "h").mkdir()
    (tmp_path / "h").chmod(0o777)
    with pytest.raises(RefusedError, match="others may write"):
        serve(Options(Home(tmp_path / "h")))
    (tmp_path / "f").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="not a folder"):
        serve(Options(Home(tmp_path / "f")))


# Input that is larger than expected: a log of a gigabyte, names of ten thousand letters.


def test_the_end_of_a_log_of_a_gigabyte_is_read_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "1" / "1"
    folder.mkdir(parents=True)
    with open(folder / "log", "wb") as out:
        out.truncate(1 << 30)  # a hole: nothing of it is written
        out.seek(0, 2)
        out.write(b"\nlast but one\nlast\n")
    piece = read_log(KeptJobs(tmp_path), "1", tail=2)
    assert piece["text"] == "last but one\nlast\n"
    assert piece["next"] == piece["size"] == (1 << 30) + 19
    assert len(read_log(KeptJobs(tmp_path), "1", tail=3)["text"]) <= 1 << 20, "a line without an end is cut"
    with open(folder / "log", "ab") as out:
        out.write(b"more\n")
    assert read_log(KeptJobs(tmp_path), "1", offset=piece["next"])["text"] == "more\n"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/jobs", {"run": ["true"], "name": "n" * 10_000}), ("POST", "/v1/jobs", {"run": ["true"], "queue": "q" * 10_000}),
        ("GET", f"/v1/jobs/{'j' * 10_000}", None), ("GET", f"/v1/jobs?q={'q' * 10_000}", None),
        ("GET", f"/v1/jobs?sort={'s' * 10_000}", None),
        ("GET", f"/v1/stream?after={'v' * 10_000}", None), ("GET", f"/v1/runs/detail?name={'r' * 10_000}", None),
        ("PUT", f"/v1/queues/{'q' * 10_000}", {"quota": 1}), ("POST", "/v1/nodes", {"nodes": ["n" * 10_000], "action": "cordon"}),
        ("POST", "/v1/login", {"code": "c" * 10_000}), ("GET", f"/v1/jobs?{'p' * 10_000}=1", None),
    ],
)  # fmt: skip
def test_names_of_ten_thousand_letters_are_refused_in_few_words(service: Running, method: str, path: str, body: Any) -> None:
    found = service.ask(path, method=method, json=body)
    assert 400 <= found.status_code < 500
    told = found.json()["error"]
    assert told["what"]
    assert len(found.text) < 2000


# What needs no token is bounded: connections, the time to say what one wants. And a service of which a part has died ends.

REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
def port() -> Iterator[int]:
    """A server for three connections, which have a fifth of a second for the head of a request."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(hello, http=bounded(3, 0.2), timeout_keep_alive=1, lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LIMIT)


def test_a_connection_too_many_is_told_so_and_closed(port: int) -> None:
    taken = [connect(port) for _ in range(3)]
    for one in taken:  # they are in use: a request was answered
        one.sendall(REQUEST)
        assert one.recv(4096).startswith(b"HTTP/1.1 200")
    with connect(port) as late:
        assert late.recv(4096).startswith(b"HTTP/1.1 503")
    taken.pop().close()

    def answered() -> bool:
        with connect(port) as again:
            again.sendall(REQUEST)
            return again.recv(4096).startswith(b"HTTP/1.1 200")

    until(answered, "a place is free")
    for one in taken:
        one.close()


@pytest.mark.parametrize("said", [b"", b"GET / HTT", REQUEST + b"GET / HT"], ids=["nothing", "half", "half-of-the-second"])
def test_who_does_not_say_what_it_wants_is_not_waited_for(port: int, said: bytes) -> None:
    with connect(port) as one:
        one.sendall(said)
        received = b"."
        try:
            while received:
                received = one.recv(4096)  # until it is closed, or the test is over time
        except ConnectionResetError:
            pass


@pytest.fixture
def crowded() -> Iterator[tuple[int, socket.socket]]:
    """A server with a port and a Unix socket, for twelve connections at each, four of one peer."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    beside = listen_on_unix_socket(port)
    server = uvicorn.Server(uvicorn.Config(hello, http=bounded(12, LIMIT, 4), lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, args=([listening, beside],))
    thread.start()
    yield port, beside
    server.should_exit = True
    thread.join()


def test_one_peer_closes_the_door_for_nobody_else(crowded: tuple[int, socket.socket], caplog: pytest.LogCaptureFixture) -> None:
    port, beside = crowded
    slow = [connect(port) for _ in range(4)]  # they say nothing, and stay
    with connect(port) as more:
        assert more.recv(4096).startswith(b"HTTP/1.1 503")
    assert "127.0.0.1 has 4 connections open" in caplog.text
    with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0), timeout=LIMIT) as other:
        other.sendall(REQUEST)
        assert other.recv(4096).startswith(b"HTTP/1.1 200")
    with socket.socket(socket.AF_UNIX) as local:  # and whatever is open at the port, this machine's users come in
        local.settimeout(LIMIT)
        local.connect(beside.getsockname())
        local.sendall(REQUEST)
        assert local.recv(4096).startswith(b"HTTP/1.1 200")
    for one in slow:
        one.close()


def test_accounts_are_bounded_at_the_unix_socket(crowded: tuple[int, socket.socket], caplog: pytest.LogCaptureFixture) -> None:
    slow = [socket.socket(socket.AF_UNIX) for _ in range(4)]
    for one in slow:
        one.connect(crowded[1].getsockname())
    with socket.socket(socket.AF_UNIX) as more:
        more.settimeout(LIMIT)
        more.connect(crowded[1].getsockname())
        assert more.recv(4096).startswith(b"HTTP/1.1 503")
    assert f"account {os.getuid()} has 4 connections open" in caplog.text
    for one in slow:
        one.close()


def test_a_client_of_this_machine_comes_in_where_the_port_is_full(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    port = int(service.url.rpartition(":")[2])
    assert socket_of(service.url) is not None
    with Client(service.url, service.token) as client, mock.patch.object(socket, "create_connection", side_effect=OSError("full")):
        assert client.status()["deciding"]
    monkeypatch.setattr(local_socket, "user_of", lambda connection: 4711)
    assert socket_of(f"http://127.0.0.1:{port}") is None, "somebody else's socket is given no token"
    assert socket_of(f"http://192.0.2.1:{port}") is None


def test_a_network_of_ipv6_is_one_peer() -> None:
    def seen(address: str) -> Peer:
        connection = mock.Mock(family=socket.AF_INET6)
        connection.getpeername.return_value = (address, 1, 0, 0)
        return peer_of(connection)

    assert seen("2001:db8:1:2::1") == seen("2001:db8:1:2:ffff::9") != seen("2001:db8:1:3::1")
    assert seen("::ffff:192.0.2.1") != seen("::ffff:192.0.2.2")


def test_a_small_answer_is_sent_at_once() -> None:
    """Without TCP_NODELAY the body of an answer waits until its head has been acknowledged: 40 ms for every request."""
    set_on: asyncio.Queue[int] = asyncio.Queue()

    def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        set_on.put_nowait(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async def connect_once() -> int:
        listening = _listen("127.0.0.1", None, None)
        async with await asyncio.start_server(connected, sock=listening):
            with connect(listening.getsockname()[1]):
                return await set_on.get()

    assert asyncio.run(connect_once())


def test_half_a_body(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.2)
    head = f"POST /v1/jobs HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {service.token}\r\ncontent-length: 100\r\n\r\n"
    with connect(int(service.url.rpartition(":")[2])) as one:
        one.sendall(head.encode() + b'{"run": ')
        assert one.recv(4096).startswith(b"HTTP/1.1 408")


def test_a_service_whose_runner_has_died_ends_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    running = Running(Options(Home(tmp_path / "home"), devices="cpu:1"), tell=told.append).start()
    monkeypatch.setattr(LocalRunner, "_wait", lambda self: 1 / 0)
    with Client(running.url, running.token) as client:
        client.submit(["true"])  # which wakes it
    running.thread.join(LIMIT)
    assert running.code == 70
    assert "the runner's thread has ended, and the service with it" in told[-1]
    assert "ZeroDivisionError" in told[-1]
