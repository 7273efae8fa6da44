"""A service that knows measured profiles: its forecasts draw from them, and its orders can be given again on the simulated clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.live.service.asking import becomes
from tests.live.service.conftest import Running

from gantline.cli.main import main
from gantline.cli.replay import fold_home
from gantline.live.scheduler.replay import RecordedRun
from gantline.live.service.home import Home, Options
from gantline.models.profiles.bundle import Bundle, Profile
from gantline.models.profiles.colocation_fit import TrialLife, fit_colocation
from gantline.traces.files.speeds import write_bundle


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("measured", numbered=True)
    lives = [TrialLife(0.1 * part, 0.05 * part, 0.1 * part, ((0.0, part), (1.0, part))) for part in (0.9, 1.0, 1.1)]
    write_bundle(Bundle({"rest": Profile("rest", alone={("cpu", 1): fit_colocation(lives)})}), folder / "profiles.json")
    running = Running(Options(Home(folder / "gantline"), devices="cpu:1", anew={"profiles": str(folder / "profiles.json")})).start()
    yield running
    running.stop()


def test_forecasts_and_replays_take_times_from_the_profiles(service: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    client = service.client()
    go = tmp_path / "go"
    first = client.submit(["sh", "-c", f"while [ ! -e {go} ]; do sleep 0.02; done"], model={"family": "rest"}, estimate=100.0)[0]
    later = client.submit(["true"], model={"family": "rest"}, estimate=50.0)[0]
    becomes(client, first)
    told = client.forecast(later, samples=6, sigma=0.0)
    (own,) = told["jobs"]
    assert "starts, stops and speeds as measured" in told["over"]
    assert own["start_low"] < own["start_mean"] < own["start_high"]
    assert own["starts_at_low"] < own["starts_at_mean"] < own["starts_at_high"]
    found = client.what_if(add="cpu:1x1", samples=4, sigma=0.0)
    assert all(one["present_low"] <= one["present"] <= one["present_high"] for one in found["differences"])
    assert client.forecast(sigma=0.0)["samples"] == 200, "as many as usual where profiles have a spread"
    go.touch()
    becomes(client, later, "succeeded")

    assert main(["replay", str(service.home), "--times", "--draws", "5", "-o", "json"]) == 0, capsys.readouterr().err
    clock = json.loads(capsys.readouterr().out)
    assert (clock["jobs"], clock["draws"], clock["left_out"]) == (2, 5, [])
    measured = {one["measure"]: one["measured"] for one in clock["measures"]}
    predicted = {one["measure"]: one["predicted"] for one in clock["measures"]}
    run = RecordedRun()
    fold_home(service.home, run=run)
    assert [(life.kind, life.gpus, life.work) for life in run.lives] == [("rest", 1, 100.0), ("rest", 1, 50.0)]
    assert main(["profile", "lives", str(service.home), "--file", run.profiles]) == 4
    assert "tell too little" in capsys.readouterr().err
    assert predicted["makespan"] > 140.0 > measured["makespan"] > 0.0, "by their estimates they had work for 150 s, one after the other"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--profiles", "p.json"), "add --times"),
        (("--draws", "5"), "add --times"),
        (("--times", "--draws", "0"), "0 draws"),
        (("--times", "--policy", "srtf"), "the record names no 'srtf'"),
        (("--times", "--set", "a=1"), "keeps its parameters in its record"),
    ],
)
def test_what_would_decide_nothing_is_refused(
    service: Running, words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(service.home), *words]) == 2
    assert told in capsys.readouterr().err
