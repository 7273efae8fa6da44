"""Browsers log in by a code that is good once; what they hold is short-lived and ends with the token that began it."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from tests.live.service.conftest import LIMIT, Running

import gantline.live.dashboard
from gantline.live.service import guard as shell
from gantline.live.service.access import CODE_LIFETIME, LIFETIME, Access, JobTokens, Sessions
from gantline.live.service.client import Client
from gantline.live.service.viewer import ViewAccess
from gantline.live.store import SqlStore


def post(service: Running, path: str, token: str | None = None, **more: object) -> httpx.Response:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx.post(service.url + path, headers=headers, trust_env=False, **more)  # type: ignore[arg-type]


def get(service: Running, path: str, token: str | None = None, **headers: str) -> httpx.Response:
    given = {"Authorization": f"Bearer {token}", **headers} if token else headers
    return httpx.get(service.url + path, headers=given, trust_env=False)


def test_a_code_opens_once_and_the_session_is_the_callers(service: Running, owner: Client) -> None:
    made = owner.create_token("ann", "submitter")
    code = post(service, "/v1/login/code", made["token"]).json()
    assert code["url"] == f"{service.url}/#login={code['code']}"
    session = post(service, "/v1/login", json={"code": code["code"]})
    assert session.status_code == 201
    assert (session.json()["user"], session.json()["role"]) == ("ann", "submitter")
    again = post(service, "/v1/login", json={"code": code["code"]})
    assert again.status_code == 401
    assert "used already" in again.json()["error"]["what"]
    token = session.json()["token"]
    me = get(service, "/v1/me", token).json()
    assert (me["user"], me["role"], me["expires"]) == ("ann", "submitter", session.json()["expires"])
    assert "submit" in me["may"]
    assert "use_policy" not in me["may"]
    assert post(service, "/v1/login/code", token).status_code == 403, "a session cannot prolong itself"
    owner.change_token(made["id"], "viewer")
    assert get(service, "/v1/me", token).json()["role"] == "viewer"
    owner.revoke_token(made["id"])
    gone = get(service, "/v1/me", token)
    assert gone.status_code == 401
    assert "was revoked" in gone.json()["error"]["what"]


def test_what_a_role_may_is_what_the_description_says(service: Running, owner: Client) -> None:
    paths = owner.get("/openapi.json")["paths"]
    roles = {entry["operationId"]: entry["x-role"] for entries in paths.values() for entry in entries.values()}
    ranks = ["anyone", "viewer", "submitter", "operator", "admin"]
    for role in ranks[1:]:
        token = owner.create_token(f"me-{role}", role)["token"]
        may = get(service, "/v1/me", token).json()["may"]
        assert sorted(may) == sorted(name for name, needs in roles.items() if needs in ranks[: ranks.index(role) + 1])


def test_codes_and_sessions_have_an_end_and_nobody_else_can_make_them() -> None:
    now = 1000.0
    sessions, other = (Sessions(JobTokens(secret * 32), lambda: now) for secret in (b"a", b"b"))
    late, _ = sessions.code("abc")
    now += CODE_LIFETIME
    assert sessions.trade(late) is None
    traded = sessions.trade(sessions.code("abc")[0])
    token, session = traded
    assert session.parent == "abc"
    assert session.expires == now + LIFETIME
    assert sessions.read(token) == session
    assert other.read(token) is None
    longer = token.replace(f"{session.expires:.0f}", f"{session.expires + 1:.0f}")
    for forged in (longer, token[:-1], token.replace("abc", "abd"), "gls_", "gls_..", "gls_abc.99999999999999999999.x", ""):
        assert sessions.read(forged) is None


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Gantline</title>", encoding="utf-8")
    (tmp_path / "deep" / "main.js").write_text("export {};", encoding="utf-8")
    (tmp_path / "notes.py").write_text("secret", encoding="utf-8")
    (tmp_path.parent / "outside.js").write_text("secret", encoding="utf-8")
    monkeypatch.setattr(shell, "_root", lambda: tmp_path)
    shell.file_of.cache_clear()
    yield tmp_path  # type: ignore[misc]
    shell.file_of.cache_clear()


@pytest.mark.usefixtures("files")
def test_the_shell_is_open_and_lets_a_browser_do_nothing_else(service: Running) -> None:
    page, script = get(service, "/"), get(service, "/dashboard/deep/main.js")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    for found in (page, script):
        assert found.status_code == 200
        assert "'unsafe" not in found.headers["content-security-policy"]
        assert "default-src 'none'" in found.headers["content-security-policy"]
        assert "set-cookie" not in found.headers
        assert get(service, found.url.path, **{"If-None-Match": found.headers["etag"]}).status_code == 304
    assert httpx.head(f"{service.url}/", trust_env=False).content == b""
    assert get(service, "/", Host="evil.example").status_code == 409
    for path in ("notes.py", "../outside.js", "%2e%2e/outside.js", "/etc/passwd", ""):
        found = get(service, f"/dashboard/{path}")
        assert found.status_code in (401, 404), path
        assert "secret" not in found.text
    assert get(service, "/v1/board").status_code == 401, "no data without a token"
    assert httpx.post(f"{service.url}/", trust_env=False).status_code == 401


def test_every_file_of_the_dashboard_is_in_the_package_and_is_served(service: Running) -> None:
    static = Path(gantline.live.dashboard.__file__).parent / "static"
    served = [file for file in static.rglob("*") if file.suffix in (".html", ".js", ".css", ".svg", ".png", ".json")]
    assert len(served) > 10
    with httpx.Client(base_url=service.url, trust_env=False, timeout=LIMIT) as http:
        for file in served:
            found = http.get(f"/dashboard/{file.relative_to(static).as_posix()}")
            assert found.content == file.read_bytes()
            assert found.headers["content-type"].partition(";")[0] in shell.TYPES[file.suffix]
        named = re.findall(r'(?:src|href)="(/[^"]*)"', http.get("/").text)
        assert named
        assert [http.get(path).status_code for path in named] == [200] * len(named)


def test_a_session_that_has_expired_is_not_let_in(tmp_path: Path) -> None:
    """Asked of what routes ask: a session's token is genuine for ever, and its end is checked where its owner is found."""
    now = 1000.0
    store = SqlStore.open(tmp_path / "store.sqlite")
    access, view = Access(store, JobTokens(b"s" * 32), lambda: now), ViewAccess(lambda: now)
    _, parent = access.create("ann", "submitter")
    for asked, of in ((access, access.caller(parent).token), (view, "view")):  # type: ignore[union-attr]
        traded = asked.sessions.trade(asked.sessions.code(of)[0])
        token, session = traded
        caller = asked.caller(token)
        assert (caller.is_session, caller.expires) == (True, session.expires)
        now = session.expires - 1
        assert asked.caller(token) is not None
        now = session.expires
        assert asked.caller(token) is None
        assert "expired" in asked.why_not(token)[0]
        now = 1000.0
    assert access.caller(parent) is not None, "the token that it began with has no end"
    short, text = access.create("ann", "submitter", lifetime=60.0)
    traded = access.sessions.trade(access.sessions.code(short.id)[0])
    assert access.caller(text) is not None
    now += 60.0
    assert access.caller(traded[0]) is None, "nor does a session outlive the token that it began with"
    store.close()
