"""Odd profiles in the regimes that run by them: clear errors or stated defaults, and the run goes on."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gantline.core.errors import GantlineError
from gantline.simulator.simulate import simulate
from gantline.traces.files.profiles import MADE_UP

JOBS = [
    {"job": f"j{k}", "arrival": 100.0 * k, "gpus": 1 + k % 2, "duration": 600.0, "app": "speech", "batch_size": 32 * (1 + k % 2)}
    for k in range(3)
]
SMALL = {"size": 8, "generations": 4}
RUNS = [("pollux", "pollux", SMALL), ("tiresias", "pollux", {}), ("optimus", "pollux", {}), ("sia", "sia", {"fit": "compiled"})]
RUNS += [("las", "default", {}), ("optimus", "default", {})]

Row = tuple[float | str, ...]
Change = Callable[[str, list[Row]], list[Row]]


def speech(folder: Path, change: Change, drop: str = "") -> Path:
    """The made-up profile of speech as files, changed; names that begin with `drop` are left out."""
    (folder / "speech").mkdir()
    for path in (MADE_UP / "speech").iterdir():
        if not drop or not path.name.startswith(drop):
            header, *rows = csv.reader(path.read_text(encoding="utf-8").splitlines())
            with (folder / "speech" / path.name).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([header, *change(path.name, [tuple(row) for row in rows])])
    return folder


def end(
    policy: str, regime: str, settings: dict[str, Any], profiles: Path | None, jobs: Any = None, cluster: str = "small:2x4"
) -> dict[str, Any]:
    run = simulate(jobs or JOBS, cluster, policy, settings=settings, regime=regime, **({} if profiles is None else {"profiles": profiles}))
    assert run.summary["completed"] == len(jobs or JOBS)
    return run.summary


def noise(square: float, variance: float) -> Change:
    return lambda name, rows: [(*row[:3], square, variance) for row in rows] if name.startswith("validation") else rows


def few_shapes(name: str, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] in ("1", "2", "11")] if name.startswith("placements") else rows


def test_shapes_that_were_not_measured_are_counted(tmp_path: Path) -> None:
    assert end("tiresias", "pollux", {}, speech(tmp_path, few_shapes), [JOBS[0] | {"gpus": 6}])["unmeasured_shapes"] > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (noise(float("nan"), 1.0), "grad_sqr.*nan is not possible"),
        (
            lambda name, rows: [(*row[:2], -1.0, 0.0) for row in rows] if name.startswith("placements") else rows,
            "step_time.*is not above zero",
        ),
        (lambda name, rows: [(*row[:3], -1.0) for row in rows] if name.startswith("placements") else rows, "sync_time.*is below zero"),
        (lambda name, rows: rows[::-1] if name.startswith("validation") else rows, "is no progress beyond"),
        (lambda name, rows: [("0", *row[1:]) for row in rows] if name.startswith("placements") else rows, "is no placement"),
    ],
)
def test_impossible_numbers_are_told_with_file_and_line(change: Change, message: str, tmp_path: Path) -> None:
    with pytest.raises(GantlineError, match=f"(?s){message}"):
        end("tiresias", "pollux", {}, speech(tmp_path, change))


def test_a_type_without_any_profile_is_named() -> None:
    with pytest.raises(GantlineError, match="'speech'"):
        end("tiresias", "pollux", {}, None, cluster="huge:2x4")
    with pytest.raises(GantlineError, match="speech"):
        end("sia", "sia", {}, None, cluster="huge:2x4")


def test_a_batch_that_fits_no_device_is_refused(tmp_path: Path) -> None:
    def too_large(name: str, rows: list[Row]) -> list[Row]:
        return [(row[0], 1000 * float(row[1]), *row[2:]) for row in rows] if name.startswith("placements") else rows

    odd = speech(tmp_path, too_large, drop="scalability")
    for policy, regime in (("sia", "sia"), ("pollux", "pollux"), ("sia", "default"), ("las", "default")):
        with pytest.raises(GantlineError, match="no batch that fits"):
            end(policy, regime, {}, odd)


def test_without_profiles_the_made_up_ones_serve_and_the_summary_says_so() -> None:
    assert end("sia", "sia", {"fit": "compiled"}, None)["profiles"] == "made up"
    assert end("tiresias", "pollux", {}, None)["profiles"] == "made up"
    with pytest.raises(GantlineError, match="needs measured profiles of 'cifar10'"):
        end("tiresias", "pollux", {}, None, [JOBS[0] | {"app": "cifar10"}])
