"""What one user cannot learn of another, and what no request can break."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.live.service.asking import over, succeed
from tests.live.service.conftest import Running

import gantline.live.dashboard
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.live.jobs.spec_file import parse_spec
from gantline.live.runners.local.output import KeptJobs, Log
from gantline.live.service import guard as shell
from gantline.live.service.access import CODE_LIFETIME, LIFETIME, Access, JobTokens, Sessions
from gantline.live.service.client import Client
from gantline.live.service.home import Home
from gantline.live.service.job_output import read_log
from gantline.live.service.viewer import ViewAccess
from gantline.live.store import SqlStore
from gantline.traces.files.clusters import parse_cluster_yaml
from gantline.traces.files.marked_yaml import MOST_VALUES

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{here}: &{here} [{', '.join([f'*{before}'] * 9)}]\n" for before, here in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGED = "a: &a {x: 1}\n" + "".join(
    f"{here}: &{here} {{<<: [{', '.join([f'*{before}'] * 9)}]}}\n" for before, here in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize("bomb", [BOMB, MERGED], ids=["lists", "merges"])
def test_aliases_of_aliases_are_refused_in_job_and_cluster_files(bomb: str) -> None:
    with pytest.raises(UsageError, match=f"more than {MOST_VALUES:,} values"):
        parse_spec(f"run: [true]\n{bomb}")
    with pytest.raises(UsageError, match="aliases"):
        parse_cluster_yaml(f"nodes: [{{count: 1, type: v100, gpus: 8}}]\n{bomb}")
    with pytest.raises(UsageError, match="inside of what it names"):
        parse_spec("run: &a [*a]")
    assert parse_spec("env: &e {A: '1'}\nrun: [echo, &w hello, *w]").words == ["echo", "hello", "hello"]


def test_a_home_that_others_may_read_is_closed(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.make()
    home.path.chmod(0o755)
    home.make()
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    home.path.chmod(0o770)
    with pytest.raises(RefusedError, match="may write"):
        home.make()


def test_whatever_a_job_leaves_in_the_home_is_its_owners_alone(service: Running) -> None:
    owner = service.client()
    (job,) = owner.submit(["sh", "-c", "echo hello; exit 3"], env={"PASSWORD": "hidden"})
    over(owner, job)
    jobs = service.home / "jobs"
    for file in (jobs, *jobs.rglob("*")):
        allowed = 0o700 if file.is_dir() else 0o600
        assert stat.S_IMODE(file.stat().st_mode) & ~allowed == 0, file


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_secret_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(RefusedError, match="instead of 32"):
        JobTokens.at(tmp_path / "secret")
    (tmp_path / "secret").unlink()
    made = JobTokens.at(tmp_path / "secret")
    assert made.token("1") == JobTokens.at(tmp_path / "secret").token("1")
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]


def test_nobody_waits_for_a_job_of_another_user_nor_learns_of_it(service: Running) -> None:
    ann, ben = service.client("ann"), service.client("ben")
    (hidden,) = ann.submit(["sleep", "1000"], name="hidden")
    (own,) = ben.submit(["true"], name="own")
    for name in (hidden, "hidden", str(int(hidden) + 1000)):
        with pytest.raises(NotFoundError) as refused:
            ben.submit(["true"], after=[{"job": name, "when": "any"}])
        assert hidden not in refused.value.fix
    assert ben.submit(["true"], after=[{"job": own, "when": "any"}])
    assert service.client().submit(["true"], after=[{"job": hidden, "when": "any"}])  # an admin sees it
    ann.cancel(hidden)


def test_a_page_at_another_port_of_this_machine_is_another_page(service: Running) -> None:
    def status(origin: str) -> int:
        return service.ask("/v1/status", headers={"Origin": origin}).status_code

    assert status(service.url) == 200
    assert status("http://127.0.0.1:1") == 409
    assert status("http://localhost:3000") == 409
    assert status("null") == 409


def test_half_of_a_character_is_refused_before_anything_happens(service: Running) -> None:
    half = '"\\ud800"'
    for path, body in (
        ("/v1/jobs", f'{{"run": ["echo", {half}]}}'),
        ("/v1/jobs", f'{{"run": ["true"], "name": {half}}}'),
        ("/v1/jobs", f'{{"run": ["true"], "after": [{half}]}}'),
        ("/v1/requests", f'{{"action": "cancel", "jobs": [{half}]}}'),
        ("/v1/tokens", f'{{"user": {half}}}'),
    ):
        found = service.ask(path, method="POST", content=body, headers={"Content-Type": "application/json"})
        assert found.status_code == 422, (path, body, found.text)
        assert "character" in found.json()["error"]["what"]
    (job,) = service.client().submit(["echo", "\U0001f680 \\ud800"], name="rocket \U0001f680")  # whole ones, and a backslash, are text
    succeed(service.client(), job)


def test_the_end_of_a_long_log_is_read_without_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    folder = tmp_path / "jobs" / "1" / "1"
    folder.mkdir(parents=True)
    lines = [f"line {k} é\n" for k in range(200_000)]
    (folder / "log.1").write_text("".join(lines[:150_000]), encoding="utf-8")
    (folder / "log").write_text("".join(lines[150_000:]), encoding="utf-8")
    taken = 0
    plain = os.pread

    def counted(descriptor: int, count: int, at: int) -> bytes:
        nonlocal taken
        taken += count
        return plain(descriptor, count, at)

    monkeypatch.setattr(os, "pread", counted)
    assert read_log(KeptJobs(tmp_path), "1", tail=3)["text"] == "".join(lines[-3:])
    assert taken < 200_000
    assert read_log(KeptJobs(tmp_path), "1", tail=60_000)["text"].startswith("line 140000 é\n")
    whole, at = "", 0
    while (piece := read_log(KeptJobs(tmp_path), "1", offset=at, limit=999_999))["text"]:
        whole, at = whole + piece["text"], piece["next"]
    assert whole == "".join(lines)


def test_output_that_is_dropped_while_it_is_followed_is_neither_repeated_nor_skipped(tmp_path: Path) -> None:
    """Who follows closely sees every line once; who was away learns how much is gone. A new keeper goes on counting."""
    folder = tmp_path / "jobs" / "1" / "1"
    folder.mkdir(parents=True)
    log, followed, at, written = Log(str(folder / "log"), 0), "", 0, ""
    for number in range(3000):
        line = f"line {number}\n"
        written += line
        log.write(line.encode())
        if number % 50 == 0:
            piece = read_log(KeptJobs(tmp_path), "1", offset=at)
            followed, at = followed + piece["text"], piece["next"]
        if number in (700, 2000):
            log.close()
            log = Log(str(folder / "log"), 0)
    assert followed == written[: len(followed)]
    assert at == len(followed) > len(written) - 1000
    away = read_log(KeptJobs(tmp_path), "1", offset=100)
    assert (away["offset"], away["next"], away["size"]) == (away["first"], len(written), len(written))
    assert 4096 <= away["next"] - away["first"] <= 8192
    assert away["text"] == written[away["offset"] :]
    assert read_log(KeptJobs(tmp_path), "1", tail=2)["offset"] == len(written) - len("line 2998\nline 2999\n")


def test_output_that_is_kept_has_a_ceiling() -> None:
    assert parse_spec("run: [sleep]\nlimits: {log: 10GB}").launch().log_bytes == 10_000_000_000
    with pytest.raises(UsageError, match="more than the 10 GB"):
        parse_spec("run: [sleep]\nlimits: {log: 11GB}")


def test_a_link_in_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "1" / "1"
    folder.mkdir(parents=True)
    (tmp_path / "secret").write_text("hidden", encoding="utf-8")
    (folder / "log").symlink_to(tmp_path / "secret")
    assert read_log(KeptJobs(tmp_path), "1")["text"] == ""


# Browsers log in by a code that is good once; what they hold is short-lived and ends with the token that began it.


def post(service: Running, path: str, token: str = "", **more: Any) -> httpx.Response:
    return service.ask(path, token, "POST", **more)


def get(service: Running, path: str, token: str = "", **headers: str) -> httpx.Response:
    return service.ask(path, token, headers=headers)


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
    assert service.ask("/", "", "HEAD").content == b""
    assert get(service, "/", Host="evil.example").status_code == 409
    for path in ("notes.py", "../outside.js", "%2e%2e/outside.js", "/etc/passwd", ""):
        found = get(service, f"/dashboard/{path}")
        assert found.status_code in (401, 404), path
        assert "secret" not in found.text
    assert get(service, "/v1/board").status_code == 401, "no data without a token"
    assert post(service, "/").status_code == 401


def test_every_file_of_the_dashboard_is_in_the_package_and_is_served(service: Running) -> None:
    static = Path(gantline.live.dashboard.__file__).parent / "static"
    served = [file for file in static.rglob("*") if file.suffix in (".html", ".js", ".css", ".svg", ".png", ".json")]
    assert len(served) > 10
    for file in served:
        found = get(service, f"/dashboard/{file.relative_to(static).as_posix()}")
        assert found.content == file.read_bytes()
        assert found.headers["content-type"].partition(";")[0] in shell.TYPES[file.suffix]
    named = re.findall(r'(?:src|href)="(/[^"]*)"', get(service, "/").text)
    assert named
    assert [get(service, path).status_code for path in named] == [200] * len(named)


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
