"""What never reaches a route: other hosts, other origins, large bodies; and what a path cannot do."""

from __future__ import annotations

import socket
import stat
import sys
from pathlib import Path

import httpx
import pytest
import trustme
from tests.live.service.conftest import Running, until

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from gantline.live.runners.local.output import KeptJobs
from gantline.live.service.client import Client
from gantline.live.service.guard import LARGEST_BODY
from gantline.live.service.home import Home, Options
from gantline.live.service.job_output import read_log
from gantline.live.service.serve import serve


def get(service: Running, path: str, **headers: str) -> httpx.Response:
    return httpx.get(service.url + path, headers={"Authorization": f"Bearer {service.token}", **headers}, trust_env=False)


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
    told = get(service, "/v1/status", Host=host)
    assert told.status_code == 409
    assert "not called that" in told.text


def test_a_page_from_elsewhere_is_refused(service: Running) -> None:
    assert get(service, "/v1/status", Origin="https://evil.example").status_code == 409
    assert get(service, "/v1/status", Origin=service.url).status_code == 200


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
    headers = {"Authorization": f"Bearer {service.token}"}
    told = httpx.post(f"{service.url}/v1/jobs", content=body, headers=headers, trust_env=False)
    assert told.status_code == 400
    assert told.json()["error"]["what"]
    assert service.client().jobs() == []


def test_answers_tell_browsers_to_do_nothing_with_them(service: Running) -> None:
    headers = get(service, "/v1/status").headers
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
    told = get(service, path)
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
