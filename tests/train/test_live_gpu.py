"""The experiment on a real GPU: its predictions can be made again from what was measured, and its parts work where there is none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from gantline.core.errors import NotFoundError
from gantline.models.profiles.bundle import Bundle, Profile, SampledLine, Speed
from gantline.traces.files.speeds import default_bundle

PLACE = Path(__file__).parents[2] / "examples" / "live_gpu"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example's modules."""
    monkeypatch.syspath_prepend(str(PLACE))
    import predict

    yield predict
    for name in ("predict", "run", "live", "history", "measure", "workload"):
        sys.modules.pop(name, None)


#: by folder and policy, of the mean completion time: measured, the clock's error, and what is left of it with the run's own times
PUBLISHED = {
    "equal_slices": {
        "fifo": ([16.53, 17.49], 0.007, 0.012),
        "srtf": ([13.62, 14.82], 0.049, 0.036),
        "las": ([30.28], -0.011, 0.0),
        "tiresias": ([25.06], 0.009, 0.003),
        "afs-l": ([21.29, 24.49], 0.002, 0.002),
        "gavel": ([26.78], -0.006, 0.003),
        "sia": ([67.03], 0.004, 0.001),
    },
    "two_sizes": {"allox": ([22.87], 0.012, 0.007), "gavel": ([34.74], -0.005, -0.001)},
}
#: of the whole: as published, and of the first two draws, which are the same every time
WHOLE = {
    "equal_slices": {"fifo": -0.019, "srtf": 0.049, "las": 0.036, "tiresias": 0.028, "afs-l": 0.035, "gavel": -0.001, "sia": 0.021},
    "two_sizes": {"allox": -0.008, "gavel": -0.038},
}
WHOLE_OF_TWO_DRAWS = {"equal_slices": {"fifo": 0.012}, "two_sizes": {"allox": -0.008}}


#: of the first policy and two draws, and as published
FEW = [(folder, 1, 2, WHOLE_OF_TWO_DRAWS) for folder in PUBLISHED]
ALL = [pytest.param(folder, None, 200, WHOLE, marks=pytest.mark.long) for folder in PUBLISHED]


@pytest.mark.parametrize(("folder", "count", "draws", "whole"), [*FEW, *ALL])
def test_the_published_errors_follow_from_the_published_measurements(
    parts: Any, tmp_path: Path, folder: str, count: int | None, draws: int, whole: dict[str, dict[str, float]]
) -> None:
    for name in ("profiles.json", "live.json"):
        (tmp_path / name).write_text((PLACE / "measured" / folder / name).read_text(encoding="utf-8"), encoding="utf-8")
    published = dict([*PUBLISHED[folder].items()][:count])
    found = {name: one["mean"] for name, one in parts.compare(tmp_path, draws, only=list(published)).items()}
    assert {
        name: ([round(run, 2) for run in one["measured"]], round(one["clock"], 3), round(one["own"], 3)) for name, one in found.items()
    } == published
    assert {name: round(one["whole"], 3) for name, one in found.items()} == whole[folder]


def test_the_default_profiles_are_measured_and_usable() -> None:
    bundle = default_bundle()
    assert {"conv-512", "transformer-64", "recommendation-128"} <= set(bundle.jobs)
    table = bundle.throughputs()
    assert set(table.types) == {"h200", "cpu"}
    for job in bundle.jobs.values():
        assert all(speed.runs and speed.source == "measured" and speed.leave and speed.resume for speed in job.alone.values())
        assert len(job.pairs) == len(bundle.jobs)
        assert all(0.0 < pairing.ratio <= 1.0 for pairing in job.pairs.values())
        assert not any(word.startswith("/") for word in job.command)
    with pytest.raises(NotFoundError):
        bundle["bert"]


def one_job(parts: Any, steps: int) -> Any:
    """A prediction of one job that takes 10 s for 1,000 steps, starts within 2 s, leaves within 0.2 s and resumes within 1.5 s."""
    speed = Speed(SampledLine(2.0, 0.01, 0.01, 0.01), leave=0.2, resume=1.5)
    bundle = Bundle({"a": Profile("a", alone={("cpu", 1): speed})})
    work = parts.workload.Work("a", 0.0, steps, 1, {("cpu", 1): steps / 100.0}, {})
    found = {"devices": "cpu:2", "terms": {"policies": {"fifo": {"policy": "fifo"}}}}
    return parts.Prediction(bundle, bundle, [bundle], found, "fifo", [work])


def run_of(orders: list[tuple[float, str]]) -> dict[str, Any]:
    return {"jobs": [{"arrival": 0.0}], "orders": [{"time": at, "order": verb, "job": 0, "devices": [0]} for at, verb in orders]}


def test_a_job_that_was_started_once_more_has_not_ended_before(parts: Any) -> None:
    turns = run_of([(0.0, "start"), (10.0, "stop"), (50.0, "start")])
    assert one_job(parts, 1000).under(turns)[0] > 53.0  # a fifth of the work is left at the stop
    assert one_job(parts, 790).under(turns)[0] == pytest.approx(51.7)  # all of it was done, just before the stop


def test_a_job_that_ended_before_its_stop_may_run_on(parts: Any) -> None:
    assert one_job(parts, 1000).under(run_of([(0.0, "start"), (10.0, "stop")]))[0] == pytest.approx(12.0)


def test_slices_of_two_sizes_are_profiled_beside_each_other(parts: Any) -> None:
    import measure

    (gpu,) = measure._gpus("cpu:1/8%x4+16%x4")
    assert [(node.type, first) for node, first in gpu.items()] == [("cpu.8pct", 0), ("cpu.16pct", 4)]
    done = Speed(SampledLine(2.0, 0.01, 0.01, 0.01))
    known = Bundle({kind: Profile(kind, alone={("cpu.8pct", 2): done}) for kind in "ab"})
    seats = [[(seat.kind, seat.first) for seat in crew] for crew in measure._crews(known, gpu, ["a", "b", "c"], 2)]
    # the third alone is missing on small slices; others fill the GPU, so that all of it is busy
    assert seats == [[("c", 0), ("a", 2), ("a", 4), ("b", 6)], [("a", 0), ("b", 2), ("c", 4), ("a", 6)]]
    assert list(measure._crews(known, gpu, ["a"], 8)) == []  # no node has so many


def test_what_runs_together_is_counted_by_its_part_of_the_gpu(parts: Any) -> None:
    """A job on a small slice beside one on a large slice is as fast as its profile says for a fifth and a bit of the rest being busy."""
    import history

    speed = Speed(SampledLine(2.0, 0.01, 0.01, 0.01), leave=0.2, resume=1.5, crowded=0.5)
    bundle = Bundle({"a": Profile("a", alone={("h200.8pct", 1): speed, ("h200.16pct", 1): speed})})
    pace = 100.0 * (1.0 - 0.5 * 16 / 88)
    rows = [
        {"kind": "a", "arrival": 0.0, "jct": 12.2, "steps": [[2.0, 0, 12.0, int(10 * pace)]]},
        {"kind": "a", "arrival": 0.0, "jct": 50.0, "steps": []},
    ]
    orders = [{"time": 0.0, "order": "start", "job": place, "devices": [4 * place]} for place in range(2)]
    seen = history.seen_in({"jobs": rows, "orders": orders}, bundle, ["h200.8pct"] * 4 + ["h200.16pct"] * 4)
    assert seen.speeds == {"a": [pytest.approx(1.0, abs=0.002)]}


def test_notes_of_steps_are_split_where_a_process_counts_anew(parts: Any, tmp_path: Path) -> None:
    import live

    log = tmp_path / "steps"
    log.write_text("100.5 1\n101.0 20\n109.0 3\n109.5 30\n")
    assert live.incarnations(log, 100.0) == [[0.5, 1, 1.0, 20], [9.0, 3, 9.5, 30]]
    assert live.incarnations(tmp_path / "none", 100.0) == []
