"""Random requests over every route with every role: some are refused, none is answered with a 5xx, and the service goes on.

`GANTLINE_REQUESTS=10000` makes it the long run (`make fuzz`).
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

import httpx
from tests.live.service.conftest import Running
from tests.live.service.test_roles import tokens

__all__ = ["tokens"]  # the fixture
REQUESTS = int(os.environ.get("GANTLINE_REQUESTS", "0"))  # 0: as many as the tier has
ODD: list[Any] = [
    None, True, 0, -1, 1, 2**63, 1e308, float("inf"), "", "1", "1_0", "0-3", "a" * 300, "\0", "\ud800", "é\U0001f680", "../..", "%2e%2e",
    [], {}, [[]], ["1"], {"a": 1}, ["x"] * 50, "cancel", "hold", "resize", "cordon", "fifo", "las", "viewer", "cpu:1",
]  # fmt: skip
KEYS = (
    "run", "name", "queue", "resources", "array", "after", "limits", "env", "retry", "priority", "labels", "estimate", "action", "request",
    "jobs",
    "gpus", "min_gpus", "max_gpus", "user", "role", "lifetime", "policy", "action", "quota", "weight", "epoch", "step", "drain",
)  # fmt: skip


def value(draw: random.Random, depth: int = 0) -> Any:
    if depth < 2 and draw.random() < 0.4:
        return {draw.choice(KEYS): value(draw, depth + 1) for _ in range(draw.randrange(4))}
    return draw.choice(ODD)


def body(draw: random.Random) -> bytes:
    kind = draw.random()
    if kind < 0.1:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(40)))
    if kind < 0.15:
        return b"[" * 5000
    if kind < 0.4:  # nearly a job
        return json.dumps({"run": ["true"], draw.choice(KEYS): value(draw)}).encode()
    return json.dumps({draw.choice(KEYS): value(draw) for _ in range(draw.randrange(5))}).encode()


def test_random_requests_are_answered_and_none_with_a_5xx(service: Running, tokens: dict[str, str]) -> None:
    draw = random.Random(20)
    paths: dict[str, dict[str, Any]] = service.client().get("/openapi.json")["paths"]
    routes = [(method.upper(), path, entry) for path, entries in paths.items() for method, entry in entries.items()]
    seen: dict[int, int] = {}
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60.0) as http:
        for number in range(REQUESTS or 100):
            method, path, entry = draw.choice(routes)
            role = draw.choice([*tokens, "admin", "operator"])
            if entry["operationId"] == "shutdown" and role == "admin":
                continue  # it would do as it is told
            for part in ("{id}", "{name}"):
                path = path.replace(
                    part, draw.choice(["1", "1_0", "cpu", "cpu:1", "q", "%00", "%ff", "..%2f..", "a" * 300, "%F0%9F%9A%80"])
                )
            names = [one["name"] for one in entry.get("parameters", ()) if one["in"] == "query"]
            query = {name: str(draw.choice([*ODD[:14], "1", "5"])).replace("\ud800", "x") for name in names if draw.random() < 0.3}
            if path.endswith(("/explain", "/forecast", "/what-if", "/past")):
                query |= {name: "1" for name in ("samples", "replicas") if name in names}
            headers = {
                "Authorization": f"Bearer {tokens[role]}",
                "Idempotency-Key": draw.choice(["", "k", "é", "x" * 250]).encode("latin-1"),
            }
            if draw.random() < 0.1:
                query["no-such"] = "1"
            found = http.request(method, path, params=query, content=body(draw) if method != "GET" else None, headers=headers)
            assert "no-such" not in query or found.status_code in (400, 401, 403, 422), (method, path, "an unknown parameter was ignored")
            seen[found.status_code] = seen.get(found.status_code, 0) + 1
            assert found.status_code < 500, (number, method, path, query, found.request.content, found.text)
    assert service.client().status()["deciding"]
    assert len(seen) >= (5 if REQUESTS >= 300 else 4), seen
