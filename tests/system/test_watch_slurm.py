"""`gantline watch slurm` beside a real Slurm: what it sees, what it forecasts, what it would change."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.slurm import SlurmCluster, missing, slurm_cluster
from tests.typed import typed

from gantline.cli.main import main
from gantline.live.watch.held_against import hold_against, keep_recordings
from gantline.live.watch.slurm_snapshot import watched
from gantline.live.watch.slurm_state import read_state

pytestmark = pytest.mark.skipif(bool(missing()), reason=f"Slurm is not installed: {', '.join(missing())}")
QUICK = "bf_interval=1,bf_resolution=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmCluster]:
    with slurm_cluster(tmp_path / "slurm", SchedulerParameters=QUICK, PriorityWeightAge="1000", PriorityMaxAge="0-1") as cluster:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, cluster.env[name])
        yield cluster


def _running(cluster: SlurmCluster, count: int) -> None:
    """Wait until so many jobs run."""
    end = time.monotonic() + 60
    while len(cluster.run("squeue", "-h", "-t", "running", "-o", "%i").split()) < count:
        assert time.monotonic() < end
        time.sleep(0.2)


def test_what_runs_and_waits_is_what_slurm_says_and_questions_are_answered(
    slurm: SlurmCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = ("-J", "x|RUNNING Priority=9\nevil")
    first = [slurm.submit(60, 4, "-t", "2", *hostile) for _ in range(3)]
    _running(slurm, 3)
    waits = [slurm.submit(60, 4, "-t", "5"), slurm.submit(60, 2, "-t", "1"), slurm.submit(1, 1, "--hold")]
    assert typed(f"watch slurm --out {tmp_path}/now.json") == 0
    look = json.loads((tmp_path / "now.json").read_text())
    jobs = {job["id"]: job for job in look["snapshot"]["jobs"]}
    assert sorted(jobs) == sorted([*first, *waits[:2]])  # the one that is held is a note
    assert sorted(device for name in first for device in jobs[name]["devices"]) == list(range(12))
    assert jobs[waits[0]]["estimate"] == 300
    assert any("JobHeldUser" in note for note in look["notes"])
    capsys.readouterr()
    assert typed("what-if --watch slurm --policy srtf -o json") == 0
    assert main(["explain", waits[0], "--snapshot", str(tmp_path / "now.json")]) == 0
    assert "waits" in capsys.readouterr().out


def test_advice_changes_nothing_until_it_is_applied_and_then_slurm_has_that_order(
    slurm: SlurmCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(3):
        slurm.submit(60, 4, "-t", "2")
    _running(slurm, 3)
    long, short = slurm.submit(1, 4, "-t", "30"), slurm.submit(1, 4, "-t", "1")

    def order() -> list[str]:
        return slurm.run("squeue", "-h", "-t", "pending", "--sort=-p,i", "-o", "%i").split()

    assert order() == [long, short]
    assert typed("watch slurm --advise sjf") == 0
    assert f"scontrol update JobId={short} Priority=" in capsys.readouterr().out
    assert order() == [long, short]
    assert typed("watch slurm --advise sjf --apply") == 0
    assert order() == [short, long]
    capsys.readouterr()
    assert typed("watch slurm --advise sjf") == 0
    assert "nothing to change" in capsys.readouterr().out


@pytest.mark.long  # forecasts of fourteen looks at a live queue take minutes
def test_nine_of_ten_starts_come_by_their_p90(slurm: SlurmCluster, tmp_path: Path) -> None:
    """A minute stands for an hour: jobs take seconds for minutes, and limits are as of an hour. Few starts, so eight of ten pass."""
    rng, looks = random.Random(3), tmp_path / "looks"
    watching = threading.Thread(target=keep_recordings, args=(looks, 4.0, 14))

    def submit() -> None:
        slurm.submit(rng.choice([1, 2, 3, 5, 8, 12]), rng.choice([1, 1, 2, 2, 4]), "-t", rng.choice(["1", "1", "2"]))

    for _ in range(24):
        submit()
    watching.start()
    for _ in range(16):
        submit()
        time.sleep(1.0)
    watching.join()
    held = hold_against(looks)
    assert held.forecasts >= 12
    assert held.by_p90 >= 0.8 * held.forecasts


def test_a_recording_of_the_script_is_the_same_look(slurm: SlurmCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slurm.submit(60, 2, "-t", "2")
    _running(slurm, 1)
    assert typed("watch slurm --script") == 0
    (tmp_path / "make.sh").write_text(capsys.readouterr().out)
    (tmp_path / "now.txt").write_text(slurm.run("sh", str(tmp_path / "make.sh")))
    assert main(["forecast", "--watch", f"slurm:{tmp_path / 'now.txt'}"]) == 0
    found = watched(read_state((tmp_path / "now.txt").read_text()))
    assert [len(job["devices"]) for job in found.snapshot["jobs"]] == [2]
