"""Where root serves, jobs run as the accounts of their users: the system keeps them apart. Only root can try that."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.asking import becomes, cancel, over, succeed
from tests.live.service.conftest import Running, until

from gantline.core.errors import NotFoundError, RefusedError
from gantline.live.runners.local.isolation import Account, LocalAccounts
from gantline.live.service.client import Client
from gantline.live.service.home import Home, Options

root = pytest.mark.skipif(os.getuid() != 0, reason="only root can run jobs as other accounts")


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    """A service that keeps users apart; its home lies where other accounts can get to."""
    place = Path(tempfile.mkdtemp(prefix="gantline-accounts-"))
    place.chmod(0o711)
    running = Running(Options(Home(place / "home"), devices="cpu:4", run_as="users")).start()
    running.client().put("/v1/users/ann", {"account": "nobody"})
    running.client().put("/v1/users/ben", {"account": "daemon"})
    yield running
    running.stop()
    shutil.rmtree(place)


def said(client: Client, command: str, **more: object) -> str:
    (job,) = client.submit(["sh", "-c", command], **more)
    over(client, job)
    return "".join(client.logs(job)).strip()


@root
def test_a_job_is_its_users_with_groups_home_and_umask(shared: Running) -> None:
    nobody = Account.find("nobody")
    told = said(
        shared.client("ann"), "id -u; id -g; id -G; echo $HOME $USER; umask; pwd; echo x > here; stat -c %U here $GANTLINE_CHECKPOINT"
    )
    uid, gid, groups, who, umask, folder, *owners = told.splitlines()
    assert (int(uid), int(gid), {*map(int, groups.split())}) == (nobody.uid, nobody.gid, {*nobody.groups})
    assert who == f"{nobody.home} nobody"
    assert umask == "0077"
    assert folder.endswith("/work")
    assert owners == ["nobody", "nobody"]


@root
def test_the_owners_jobs_run_as_the_service_does(shared: Running) -> None:
    assert said(shared.client(), "id -u") == "0"


@root
def test_one_user_can_neither_read_nor_signal_what_is_anothers(shared: Running) -> None:
    ann, ben = shared.client("ann"), shared.client("ben")
    (job,) = ann.submit(["sh", "-c", "echo hidden > mine; echo $$; sleep 1000"], env={"PASSWORD": "hidden"})
    until(lambda: "".join(ann.logs(job)).strip())
    pid, folder = "".join(ann.logs(job)).strip(), shared.home / "jobs" / job / "1"
    tried = f"cat {folder / 'work' / 'mine'} {folder}/order.json {folder}/log; ls {shared.home} {folder}"
    tried += f"; tr '\\0' ' ' < /proc/{pid}/environ; kill -9 {pid}"
    told = said(ben, f"({tried}) 2>&1; echo tried")
    assert told.endswith("tried")
    assert "hidden" not in told
    assert told.count("ermission denied") + told.count("not permitted") >= 6, told
    assert ann.job(job)["state"] == "running"
    cancel(ann, job)


@root
def test_what_a_job_leaves_cannot_lead_the_keeper_astray(shared: Running) -> None:
    told = said(shared.client("ann"), "cd $GANTLINE_FOLDER; for f in state.json log.1 x; do ln -sf /etc/passwd $f && echo made; done; true")
    assert "made" not in told
    for one in (shared.home, shared.home / "jobs"):
        assert stat.S_IMODE(one.stat().st_mode) == 0o711


@root
def test_a_user_without_an_account_is_refused_with_the_reason(shared: Running) -> None:
    with pytest.raises(RefusedError, match=r"user 'carla' has no account.*no account 'carla'"):
        shared.client("carla").submit(["true"])
    with pytest.raises(RefusedError, match="cannot change its size while it runs"):
        shared.client("ann").submit(["true"], elastic={"min": 1, "max": 2, "live": True})
    owner = shared.client()
    with pytest.raises(RefusedError, match="do not run as root"):
        owner.put("/v1/users/carla", {"account": "root"})
    with pytest.raises(NotFoundError, match="no account 'no-such'"):
        owner.put("/v1/users/carla", {"account": "no-such"})
    assert owner.get("/v1/users")["users"] == [{"user": "ann", "account": "nobody"}, {"user": "ben", "account": "daemon"}]


@root
def test_a_folder_that_the_account_may_not_enter_is_not_entered(shared: Running) -> None:
    hidden = shared.home.parent / "hidden"
    hidden.mkdir(mode=0o700, exist_ok=True)
    (job,) = shared.client("ann").submit(["true"], workdir=str(hidden))
    (ended,) = over(shared.client(), job)
    assert ended["state"] == "failed"
    assert "nobody cannot enter" in ended["why"]


@pytest.fixture
def home() -> Iterator[Home]:
    """A home where other accounts can get to."""
    place = Path(tempfile.mkdtemp(prefix="gantline-accounts-"))
    place.chmod(0o711)
    yield Home(place / "home")
    shutil.rmtree(place)


@root
def test_how_jobs_run_is_remembered_in_the_home(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade starts the service without the option."""
    monkeypatch.delenv("GANTLINE_RUN_AS")
    running = Running(Options(home, devices="cpu:1", run_as="service")).start()
    carla = running.client("carla")
    client = running.client()
    client.submit(["sleep", "600"])
    (waits,) = carla.submit(["id", "-u"])
    running.stop()
    running = Running(Options(home)).start()
    client = running.client()
    client.cancel("1")
    succeed(client, waits)
    assert client.get("/v1/users")["run_as"] == "service"
    running.stop()


@root
def test_a_waiting_job_without_an_account_is_held_until_there_is_one(home: Home) -> None:
    running = Running(Options(home, devices="cpu:1", run_as="service")).start()
    client = running.client()
    (busy,) = client.submit(["sleep", "600"])
    (waits,) = running.client("carla").submit(["sh", "-c", "id -u"])
    running.stop(drain=False)
    running = Running(Options(home, run_as="users")).start()
    client = running.client()
    becomes(client, waits, "held")
    assert client.job(waits)["reason"] == "account"
    assert "has an account" in client.job(waits)["why"]
    cancel(client, busy)
    client.release(waits)
    assert client.job(waits)["state"] == "held"
    client.put("/v1/users/carla", {"account": "nobody"})
    succeed(client, waits)
    assert "".join(client.logs(waits)).strip() == str(Account.find("nobody").uid)
    running.stop()


@root
def test_an_account_that_goes_while_a_job_waits_holds_the_job(home: Home) -> None:
    """Found when the job is to begin: it is not failed either."""
    running = Running(Options(home, devices="cpu:1", run_as="users")).start()
    client = running.client()
    client.put("/v1/users/ann", {"account": "nobody"})
    (busy,) = client.submit(["sleep", "600"])
    (waits,) = running.client("ann").submit(["true"])
    client.delete("/v1/users/ann")  # and no account has that name
    client.cancel(busy)
    becomes(client, waits, "held")
    assert client.job(waits)["reason"] == "account"
    assert client.job(waits)["failures"] == 0
    client.put("/v1/users/ann", {"account": "nobody"})
    succeed(client, waits)
    running.stop()


@root
def test_whose_jobs_run_as_root_is_decided_by_the_account_of_the_service(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "ann")
    running = Running(Options(home, devices="cpu:1", run_as="users")).start()
    assert running.client().status()["user"] == "root"
    with pytest.raises(RefusedError, match="user 'ann' has no account"):
        running.client("ann").submit(["id", "-u"])
    running.stop()


@root
def test_a_home_that_accounts_cannot_get_to_is_refused(home: Home) -> None:
    closed = home.path.parent / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(RefusedError, match=f"may not enter {closed}.*another --home"):
        Running(Options(Home(closed / "a" / "home"), devices="cpu:1", run_as="users")).start()
    Running(Options(Home(closed / "a" / "home"), devices="cpu:1", run_as="service")).start().stop()


def test_root_is_nobodys_account() -> None:
    accounts = LocalAccounts(True, "olga", lambda: {"ann": "root"})
    assert accounts.of("olga") is None
    assert LocalAccounts(False, "olga").of("ann") is None
    with pytest.raises(RefusedError, match="is root"):
        accounts.of("ann")
    with pytest.raises(RefusedError, match="is root"):
        accounts.of("root")


def test_only_root_can_serve_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with pytest.raises(RefusedError, match="only root"):
        Options(Home(tmp_path), run_as="users").check()
    assert not Options(Home(tmp_path)).apart("users")
