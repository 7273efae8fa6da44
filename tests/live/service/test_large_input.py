"""Input that is larger than expected: a log of a gigabyte, names of ten thousand letters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.live.service.conftest import Running

from gantline.live.runners.local.output import KeptJobs
from gantline.live.service.job_output import read_log


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
    headers = {"Authorization": f"Bearer {service.token}"}
    found = httpx.request(method, service.url + path, json=body, headers=headers, trust_env=False, timeout=60.0)
    assert 400 <= found.status_code < 500
    told = found.json()["error"]
    assert told["what"]
    assert len(found.text) < 2000
