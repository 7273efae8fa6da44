"""Every route, every role, every method: nobody may more than is written, and nothing is open."""

from __future__ import annotations

import itertools
import json
import os
import random
from typing import Any

import pytest
from fastapi import FastAPI
from tests.live.service import access_table
from tests.live.service.conftest import Running

from gantline.live.service import app as application
from gantline.live.service.access import NAMES, Role
from gantline.live.service.application import Router

METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS")
RANK = {name: place for place, name in enumerate(NAMES)}


@pytest.fixture(scope="module")
def tokens(service: Running) -> dict[str, str]:
    owner = service.client()
    found = {role: str(owner.create_token(f"walker-{role}", role)["token"]) for role in NAMES}
    id = owner.submit(["true"], name="walked")[0]
    secret = (service.home / "secret").read_bytes()
    from gantline.live.service.access import JobTokens

    return {**found, "job": JobTokens(secret).token(id)}


def filled(path: str) -> str:
    return path.replace("{id}", "no-such").replace("{name}", "no-such")


def test_the_description_names_a_role_for_every_route_and_every_route_is_in_it(service: Running) -> None:
    paths = service.client().get("/openapi.json")["paths"]
    told = {(method.upper(), path): entry["x-role"] for path, entries in paths.items() for method, entry in entries.items()}
    built = {(method, route.path_format) for router in application.ROUTERS for route in router.routes for method in route.methods}  # type: ignore[attr-defined]
    assert {(method, path.replace(":path", "")) for method, path in built} == set(told)
    assert set(told.values()) <= set(Role)
    assert len(told) >= 20


def test_a_walk_over_routes_roles_and_methods(service: Running, tokens: dict[str, str]) -> None:
    paths: dict[str, dict[str, Any]] = service.client().get("/openapi.json")["paths"]
    seen: dict[tuple[str, str], dict[str, int]] = {}
    for path, method, role in itertools.product(paths, METHODS, [*NAMES, "job", None]):
        entry = paths[path].get(method.lower())
        if entry is None and role not in ("admin", None):
            continue  # whoever may most cannot do it either
        if entry is not None and entry["operationId"] == "shutdown" and role == "admin":
            seen.setdefault((method, path), {})["admin"] = 202
            continue  # it would end the service; the end is tested elsewhere
        found = service.ask(filled(path), tokens[role] if role else "", method).status_code
        where = f"{method} {path} as {role}"
        if entry is not None:
            seen.setdefault((method, path), {})[role or "none"] = found
        if entry is not None and entry["x-role"] == "anyone":
            assert found == (200 if path == "/healthz" else 400), where  # no token is needed; to log in, a code is
        elif role is None:
            assert found == 401, where
        elif entry is None:
            assert found == 405, where
        elif entry["x-role"] == "job":
            assert found in ((400,) if role == "job" else (403,)), where  # 400: the body is missing; the token was good enough
        elif role == "job" or RANK[role] < RANK[entry["x-role"]]:
            assert found == 403, where
        else:
            assert found not in (401, 403, 405, 500), where
    new = access_table.table(seen)
    if os.environ.get("GANTLINE_WRITE_TABLES"):
        access_table.write(new)
    assert access_table.committed() == new, "docs/access.md says otherwise: make access-table"


def test_a_route_without_a_role_cannot_be_served(service: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    router = Router()
    router.add_api_route("/v1/open", lambda: "hello", methods=["GET"])
    monkeypatch.setattr(application, "ROUTERS", (*application.ROUTERS, router))
    with pytest.raises(TypeError, match="says no role"):
        application.build(FastAPI().state, [])  # type: ignore[arg-type]


def test_a_token_that_is_revoked_or_over_is_good_for_nothing(service: Running) -> None:
    owner = service.client()
    made, short = owner.create_token("gone", "admin"), owner.create_token("late", "admin", lifetime=0.001)
    assert service.ask("/v1/status", made["token"]).status_code == 200
    owner.revoke_token(made["id"])
    for token in (made["token"], short["token"], "gl_", "x" * 1000, "glj_1.abc"):
        assert service.ask("/v1/status", token).status_code == 401


def test_tokens_are_kept_as_hashes_and_never_written_down(service: Running, tokens: dict[str, str]) -> None:
    owner = service.client()
    canary = str(owner.create_token("canary", "submitter")["token"])
    service.ask("/v1/jobs", canary)
    service.ask(f"/v1/jobs/{canary}", canary)  # a slip of the hand
    assert canary not in str(owner.tokens())
    for file in service.home.rglob("*"):
        if file.is_file() and file.name != "token":
            content = file.read_bytes()
            for token in (canary, *tokens.values(), service.token):
                if file.name == "order.json" and token == tokens["job"]:
                    continue  # the job's own, in the job's own folder, for its owner alone
                assert token.encode() not in content, f"a token in {file}"


# Random requests over every route with every role: some are refused, none is answered with a 5xx, and the service goes on.
#
# `GANTLINE_REQUESTS=10000` makes it the long run (`make fuzz`).

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
    for number in range(REQUESTS or 100):
        method, path, entry = draw.choice(routes)
        role = draw.choice([*tokens, "admin", "operator"])
        if entry["operationId"] == "shutdown" and role == "admin":
            continue  # it would do as it is told
        for part in ("{id}", "{name}"):
            path = path.replace(part, draw.choice(["1", "1_0", "cpu", "cpu:1", "q", "%00", "%ff", "..%2f..", "a" * 300, "%F0%9F%9A%80"]))
        names = [one["name"] for one in entry.get("parameters", ()) if one["in"] == "query"]
        query = {name: str(draw.choice([*ODD[:14], "1", "5"])).replace("\ud800", "x") for name in names if draw.random() < 0.3}
        if path.endswith(("/explain", "/forecast", "/what-if", "/past")):
            query |= {name: "1" for name in ("samples", "replicas") if name in names}
        headers = {"Idempotency-Key": draw.choice(["", "k", "é", "x" * 250]).encode("latin-1")}
        if draw.random() < 0.1:
            query["no-such"] = "1"
        content = body(draw) if method != "GET" else None
        found = service.ask(path, tokens[role], method, headers, params=query, content=content)
        assert "no-such" not in query or found.status_code in (400, 401, 403, 422), (method, path, "an unknown parameter was ignored")
        seen[found.status_code] = seen.get(found.status_code, 0) + 1
        assert found.status_code < 500, (number, method, path, query, found.request.content, found.text)
    assert service.client().status()["deciding"]
    assert len(seen) >= (5 if REQUESTS >= 300 else 4), seen
