"""Going back to a backup as an operator does it, and what is said of what is lost."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.test_live import home, up_here
from tests.waiting import LIMIT

__all__ = ["home"]  # a fixture


def run_one(cli: Cli) -> str:
    job = cli("submit", "--", "true").out.strip()
    assert cli("wait", job, "--timeout", str(LIMIT)).code == 0
    return job


def test_a_restore_says_what_is_lost_and_the_next_service_goes_on_behind_it(cli: Cli, home: Path) -> None:
    up_here(cli)
    first = run_one(cli)
    assert cli("backup", home / "copy").code == 0
    lost = run_one(cli)
    refused = cli("restore", home / "copy")
    assert refused.code == 4
    assert "gantline down" in refused.err
    assert cli("down").code == 0
    done = cli("restore", home / "copy")
    assert done.code == 0, done.err
    assert f"submitted later: {lost}; their folders stay" in done.err
    assert f"new ones have numbers from {int(lost) + 1} on" in done.err
    assert "gantline.sqlite-set-aside-1" in done.err
    assert "revoked since the backup are valid again" in done.err
    up_here(cli)
    assert [job["id"] for job in cli("get", "jobs", "-o", "json").json] == [first]
    assert int(run_one(cli)) == int(lost) + 1
    assert cli("down").code == 0
    assert cli("replay", home).code == 0
