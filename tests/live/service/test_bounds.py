"""What needs no token is bounded: connections, the time to say what one wants. And a service of which a part has died ends."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import uvicorn
from tests.live.service.conftest import LIMIT, Running, until

from gantline.live.runners.local.runner import LocalRunner
from gantline.live.service import guard
from gantline.live.service import home as local_socket
from gantline.live.service.client import Client
from gantline.live.service.connections import Peer, bounded, peer_of
from gantline.live.service.home import Home, Options, listen_on_unix_socket, socket_of
from gantline.live.service.serve import _listen

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
    near = listen_on_unix_socket(port)
    server = uvicorn.Server(uvicorn.Config(hello, http=bounded(12, LIMIT, 4), lifespan="off", log_config=None))
    thread = threading.Thread(target=server.run, args=([listening, near],))
    thread.start()
    yield port, near
    server.should_exit = True
    thread.join()


def test_one_peer_closes_the_door_for_nobody_else(crowded: tuple[int, socket.socket], caplog: pytest.LogCaptureFixture) -> None:
    port, near = crowded
    slow = [connect(port) for _ in range(4)]  # they say nothing, and stay
    with connect(port) as more:
        assert more.recv(4096).startswith(b"HTTP/1.1 503")
    assert "127.0.0.1 has 4 connections open" in caplog.text
    with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0), timeout=LIMIT) as other:
        other.sendall(REQUEST)
        assert other.recv(4096).startswith(b"HTTP/1.1 200")
    with socket.socket(socket.AF_UNIX) as local:  # and whatever is open at the port, this machine's users come in
        local.settimeout(LIMIT)
        local.connect(near.getsockname())
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
