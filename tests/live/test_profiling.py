"""Short runs of real processes, from the command line."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from gantline.cli.main import main
from gantline.core.errors import RefusedError, UsageError
from gantline.live.jobs.launch import Launch
from gantline.live.jobs.spec_file import parse_spec
from gantline.live.profiling import colocation_profiling
from gantline.live.profiling.colocation_profiling import ColocatedGangs, TrialGang
from gantline.live.profiling.trials import Place, Trials, measure_pairs
from gantline.live.runners.local.devices import declared
from gantline.models.profiles.bundle import Bundle, Profile, SampledLine, Speed
from gantline.traces.files.speeds import default_bundle, read_bundle

PLAIN = str(Path(__file__).parents[2] / "examples" / "train_plain.py")
SLEEP = "import sys, time; time.sleep(0.01 * int(sys.argv[1]))"


def test_a_job_is_measured_on_each_type_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "profiles.json")
    command = [sys.executable, "-S", "-c", SLEEP, "{steps}"]
    words = ["--file", file, "--devices", "cpu:2,gpu:1", "--gpus", "1,2", "--steps", "0,20", "--repeats", "1", "--total", "1000"]
    assert main(["profile", "run", "sleep", *words, "--family", "f", "--", *command]) == 0
    profile = read_bundle(file)["sleep"]
    assert set(profile.alone) == {("cpu", 1), ("cpu", 2), ("gpu", 1)}  # a second gpu is not there
    assert (profile.command, profile.steps, profile.family) == (tuple(command), 1000.0, "f")
    for speed in profile.alone.values():
        assert [steps for steps, _ in speed.runs] == [0.0, 20.0]
        assert speed.runs[1][1] >= 0.2
    capsys.readouterr()
    assert main(["profile", "show", file, "-o", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {(row["job"], row["type"], row["gpus"], row["source"]) for row in rows} == {
        ("sleep", "cpu", 1, "measured"),
        ("sleep", "cpu", 2, "measured"),
        ("sleep", "gpu", 1, "measured"),
    }
    assert main(["profile", "fit", file, "--to", str(tmp_path / "fitted.json")]) == 0
    assert read_bundle(tmp_path / "fitted.json")["sleep"].alone.keys() == profile.alone.keys()


def test_a_job_that_uses_the_library_needs_no_place_for_its_steps() -> None:
    place = Place.on(declared("cpu:1"), "cpu", 1)
    speed = Trials().alone([sys.executable, PLAIN, "--pause", "0.02"], place, (1, 21), repeats=1)
    assert speed.runs[1][1] >= 0.42  # twenty-one pauses; how long the starts took besides is the machine's affair


def test_a_job_is_watched_through_its_lives() -> None:
    """It trains, saves and leaves when it is told to, goes on from what it has saved, and ends by itself; starts are made in turn."""
    place, turns = Place.on(declared("cpu:2"), "cpu", 1, 1), Turns()
    command = [sys.executable, PLAIN, "--pause", "0.02", "--epochs", "100000"]
    speed = Trials(warmup=0.0, turn=turns).watched(command, place, 0.5, repeats=1)
    assert turns.taken == 3
    (early, sooner), (late, later) = speed.runs
    assert 1 <= early < late
    assert later - sooner >= 0.02 * (late - early)  # it pauses at every step
    assert 0.0 < (speed.leave or 0.0) < 30.0
    assert (speed.resume or 0.0) > 0.0
    bundle = Bundle({"job": Profile("job", tuple(command), alone={("cpu", 1): speed})})
    again = Bundle.of(bundle.to_json())["job"].alone["cpu", 1]
    assert (again.leave, again.resume) == pytest.approx((speed.leave, speed.resume), rel=1e-5)
    with pytest.raises(UsageError, match="no 1 x 'cpu' here"):
        Place.on(declared("cpu:2"), "cpu", 1, 2)


def test_a_job_is_watched_from_the_command_line(tmp_path: Path) -> None:
    file = str(tmp_path / "profiles.json")
    words = ["--file", file, "--devices", "cpu:1", "--repeats", "1", "--watch", "0.3s"]
    assert main(["profile", "run", "plain", *words, "--", sys.executable, PLAIN, "--pause", "0.02", "--epochs", "100000"]) == 0
    speed = read_bundle(file)["plain"].alone["cpu", 1]
    assert speed.leave is not None
    assert speed.resume is not None


class Turns(AbstractContextManager[None]):
    """Counts who takes a turn."""

    taken = 0

    def __enter__(self) -> None:
        self.taken += 1

    def __exit__(self, *error: object) -> None:
        return None


def test_a_pair_is_watched_while_both_run() -> None:
    """Two jobs that only wait do not disturb each other, however slow the machine is alone or together."""
    machine = declared("gpu:1")
    command = (sys.executable, PLAIN, "--pause", "0.02", "--epochs", "100000")
    alone = Speed(SampledLine(0.1, 0.025, 0.02, 0.03))
    jobs = {name: Profile(name, command, alone={("gpu", 1): alone}) for name in ("a", "b")}
    *_, last = measure_pairs(Bundle(jobs), machine, Trials(warmup=0.0), 0.2, lambda text: None)
    assert set(last["a"].pairs) == {("gpu", 1, "a"), ("gpu", 1, "b")}
    assert set(last["b"].pairs) == {("gpu", 1, "a"), ("gpu", 1, "b")}
    assert all(0.0 < pairing.ratio < 1.3 for job in last.jobs.values() for pairing in job.pairs.values())


def test_runs_that_go_wrong_are_told() -> None:
    place = Place.on(declared("cpu:1"), "cpu", 1)
    with pytest.raises(RefusedError, match=r"code 3: oh no"):
        Trials().run([sys.executable, "-S", "-c", "print('oh no'); raise SystemExit(3)", "{steps}"], place, 5)
    with pytest.raises(RefusedError, match="cannot be started"):
        Trials().run(["/no/such/program", "{steps}"], place, 5)
    with pytest.raises(RefusedError, match=r"more than 0\.05 s"):
        Trials(limit=0.05).run([sys.executable, "-S", "-c", "import time; time.sleep(60)", "{steps}"], place, 5)
    with pytest.raises(UsageError, match="no notice"):
        Trials().run([sys.executable, "-S", "-c", "pass"], place, 5)
    with pytest.raises(UsageError, match="no 2 x 'cpu'"):
        Place.on(declared("cpu:1"), "cpu", 2)


@pytest.mark.parametrize(
    "words",
    [
        ["run"],
        ["run", "name"],
        ["run", "name", "--steps", "10", "--", "true"],
        ["run", "name", "--gpus", "0", "--", "true"],
        ["run", "name", "--gpus", "9", "--devices", "cpu:1", "--", "true"],
        ["show", "missing.json"],
        ["fit", "missing.json"],
    ],
)
def test_mistakes_on_the_command_line_cost_one_message(words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    extra = ["--file", str(tmp_path / "p.json")] if words[0] == "run" and "--" not in words else []
    assert main(["profile", *words, *extra]) in (2, 3, 4)
    assert "Traceback" not in capsys.readouterr().err


def test_profiles_become_ways_and_an_estimate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default profiles: a small transformer runs on a GPU and, a little slower, on two cores; a large one only on the GPU."""
    job = tmp_path / "job.yaml"
    job.write_text("run: python train.py\nmodel: transformer-2\nprogress: {total: 1000}\n", encoding="utf-8")
    assert main(["profile", "apply", str(job)]) == 0
    told = capsys.readouterr().out
    spec = parse_spec(told)
    line = {kind: speed.line.seconds for (kind, _), speed in default_bundle()["transformer-2"].alone.items()}
    options = spec.to_submit("1", 0.0).job["options"]
    assert [(option["type"], option.get("rate", 1.0)) for option in options] == [
        ("h200", 1.0),
        ("cpu", pytest.approx(line["h200"] / line["cpu"])),
    ]
    assert spec.estimate == pytest.approx(1000 * line["h200"])
    job.write_text("run: python train.py\nmodel: transformer-64\n", encoding="utf-8")
    assert main(["profile", "apply", str(job)]) == 0
    spec = parse_spec(capsys.readouterr().out)
    assert [variant.accelerators for variant in spec.resources.variants] == ["h200:1"]
    assert spec.estimate is None  # nobody said how many steps there are
    for wrong in ("run: python train.py\nmodel: unheard-of\n", "run: python train.py\nmodel: conv-4\nresources: {gpus: 2}\n"):
        job.write_text(wrong, encoding="utf-8")
        assert main(["profile", "apply", str(job)]) in (3, 4)


def test_a_job_is_measured_together_from_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two gangs fill the node one after the other, are stopped and resumed, one by one and at once, and leave."""
    monkeypatch.setattr(colocation_profiling, "_WARM", 0.05)  # these steps are as fast at first as later
    file = str(tmp_path / "profiles.json")
    begins = "import sys, time; from gantline import train; job = train.join(); job.keep()"
    program = f"{begins}; [time.sleep(0.01) for _ in job.steps(int(sys.argv[1]))]"
    words = ["--file", file, "--devices", "cpu:2", "--seconds", "0.1s", "--", sys.executable, "-c", program, "{steps}"]
    assert main(["profile", "colocation", "waits", *words]) == 0
    speed = read_bundle(file)["waits"].alone["cpu", 1]
    assert 0.0 < speed.line.rate <= 100.0  # it pauses at every step
    assert (len(speed.samples["start"]), len(speed.samples["leave"]), len(speed.samples["resume"])) == (2, 2, 2)
    assert len(speed.samples["speed"]) == 6  # the first alone, both, both, the second alone
    assert min(speed.leave or 0.0, speed.resume or 0.0, speed.crowded) > 0.0


def test_resumes_at_once_are_held_against_resumes_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gang of two beside one of one, both half a second late: half a second for one other device, a quarter for each of two."""
    made: list[tuple[str, int]] = []

    def noted(what: str, row: int, seconds: float) -> float:
        made.append((what, row))
        return seconds

    gangs = [TrialGang("pair", (0, 1), lambda steps: Launch(("true",))), TrialGang("single", (2,), lambda steps: Launch(("true",)))]
    crew = ColocatedGangs.__new__(ColocatedGangs)
    crew.gangs = gangs
    monkeypatch.setattr(crew, "_stopped", lambda row: noted("stop", row, 0.2))
    monkeypatch.setattr(crew, "_ordered", lambda row: noted("order", row, 10.0))
    monkeypatch.setattr(crew, "_up", lambda row, at: noted("up", row, (2.5, 1.5)[row]))
    assert crew._delay_of_each_other([2.0, 1.0]) == pytest.approx((0.5 / 1 + 0.5 / 2) / 2)
    assert made == [(what, row) for what in ("stop", "order", "up") for row in range(2)]  # all are ordered before one is waited for
    crew.gangs = gangs[:1]
    assert crew._delay_of_each_other([2.0]) == 0.0


def test_slices_of_two_sizes_count_by_their_part_of_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four slices of 8 % and four of 16 %, of which a gang holds two small ones and another one large one."""
    crew = ColocatedGangs.__new__(ColocatedGangs)
    crew.gangs = [
        TrialGang("small", (0, 1), lambda steps: Launch(("true",)), 8),
        TrialGang("large", (4,), lambda steps: Launch(("true",)), 16),
    ]
    crew.size = 4 * 8 + 4 * 16
    for name in ("_started", "_stopped"):
        monkeypatch.setattr(crew, name, lambda row: 1.0)
    monkeypatch.setattr(crew, "_delay_of_each_other", lambda resumes: 0.0)
    monkeypatch.setattr(crew, "_watched", lambda running, seconds: dict.fromkeys(running, 5.0))
    small, large = crew.measure(1.0)
    beside = pytest.approx(16 / 80)  # of what the other holds of the rest
    assert small.speeds == ((0.0, 5.0), (beside, 5.0), (beside, 5.0))
    assert large.speeds == ((beside, 5.0), (beside, 5.0), (0.0, 5.0))


def test_a_command_that_cannot_end_by_itself_is_refused_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", "colocation", "waits", "--devices", "cpu:2", "--", "true"]) == 2
    assert "{steps}" in capsys.readouterr().err
