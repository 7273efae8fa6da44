"""Every route, every role, every method: nobody may more than is written, and nothing is open."""

from __future__ import annotations

import itertools
import os
from typing import Any

import httpx
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


HTTP = httpx.Client(verify=False, trust_env=False, timeout=60.0)


def answer(service: Running, method: str, path: str, token: str | None) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return HTTP.request(method, service.url + path, headers=headers)


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
        found = answer(service, method, filled(path), tokens[role] if role else None).status_code
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
    assert answer(service, "GET", "/v1/status", made["token"]).status_code == 200
    owner.revoke_token(made["id"])
    for token in (made["token"], short["token"], "gl_", "x" * 1000, "glj_1.abc"):
        assert answer(service, "GET", "/v1/status", token).status_code == 401


def test_tokens_are_kept_as_hashes_and_never_written_down(service: Running, tokens: dict[str, str]) -> None:
    owner = service.client()
    canary = str(owner.create_token("canary", "submitter")["token"])
    answer(service, "GET", "/v1/jobs", canary)
    answer(service, "GET", f"/v1/jobs/{canary}", canary)  # a slip of the hand
    assert canary not in str(owner.tokens())
    for file in service.home.rglob("*"):
        if file.is_file() and file.name != "token":
            content = file.read_bytes()
            for token in (canary, *tokens.values(), service.token):
                if file.name == "order.json" and token == tokens["job"]:
                    continue  # the job's own, in the job's own folder, for its owner alone
                assert token.encode() not in content, f"a token in {file}"
