"""What one user cannot learn of another, and what no request can break."""

from __future__ import annotations

import stat
from pathlib import Path

import httpx
import pytest
from tests.live.service.asking import over, succeed
from tests.live.service.conftest import Running

from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.live.jobs.spec_file import parse_spec
from gantline.live.runners.local.output import KeptJobs, Log
from gantline.live.service.access import JobTokens
from gantline.live.service.home import Home
from gantline.live.service.job_output import read_log
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
        headers = {"Authorization": f"Bearer {service.token}", "Origin": origin}
        return httpx.get(f"{service.url}/v1/status", headers=headers, trust_env=False).status_code

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
        headers = {"Authorization": f"Bearer {service.token}", "Content-Type": "application/json"}
        found = httpx.post(service.url + path, content=body, headers=headers, trust_env=False)
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
