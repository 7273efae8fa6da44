"""A service says which policy of a portfolio is in charge, and why: in its events, its decisions, its answers and its report."""

from __future__ import annotations

from pathlib import Path

from tests.live.specs import replays, running, shell, submit, until, until_running

from gantline.lab.report.figures import gantt
from gantline.lab.report.run_warnings import policies_in_charge
from gantline.lab.report.service_run import read_service
from gantline.live.store import SqlStore


def test_a_change_of_policy_is_an_event_a_column_of_decisions_and_a_strip_of_the_picture(tmp_path: Path) -> None:
    store = SqlStore.open(tmp_path / "gantline.sqlite")
    with running(tmp_path, "cpu:1", "synthesizer", store=store, settings={"portfolio": "fifo,srtf", "every": 1}) as scheduler:
        first = submit(scheduler, f"while [ ! -e {tmp_path}/flag ]; do sleep 0.05; done", estimate=1000.0)
        until_running(scheduler, first)
        scheduler.submit(shell("sleep 1000", estimate=9000.0))
        short = submit(scheduler, "sleep 1000", estimate=3000.0)
        until(lambda: scheduler.view().in_charge.startswith("srtf is in charge: mean-jct"))
        (tmp_path / "flag").touch()
        until_running(scheduler, short)
    told = [one for one in store.events() if one["event"] == "in-charge"]
    assert [one["policy"] for one in told] == ["fifo", "srtf"]
    assert "under fifo" in told[1]["why"]
    whys = [one["why"] for one in store.decisions() if "why" in one]
    assert whys[-1] == told[1]["because"]
    store.close()
    replays(tmp_path / "gantline.sqlite")
    past = read_service(tmp_path)
    assert policies_in_charge(past).startswith("in charge: ")
    assert [name for name, _ in gantt(past).panels[0].layers[0].legend] == ["fifo", "srtf"]
