"""Profiles in the published layout, and what is told about broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.simulator.references import reference

from gantline.core.errors import GantlineError
from gantline.traces.files.profiles import read_profiles

VALIDATION = "progress,iteration,metric,grad_sqr,grad_var\n10,10,0,1,2\n20,20,0,1,3\n"
PLACEMENTS = "local_bsz,placement,step_time,sync_time\n8,1,0.5,0\n16,1,0.8,0\n8,21,0.9,0.2\n"
SCALABILITY = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n3,3,8,1.0,0.3\n"


def folder(tmp_path: Path, **files: str) -> Path:
    app = tmp_path / "net"
    app.mkdir()
    texts = {"placements-t4": PLACEMENTS, "scalability-t4": SCALABILITY, "validation-8": VALIDATION, "validation-32": VALIDATION} | files
    for name, text in texts.items():
        (app / f"{name}.csv").write_text(text)
    return tmp_path


def test_columns_are_found_by_name_and_placements_are_rings(tmp_path: Path) -> None:
    app = read_profiles(folder(tmp_path))["net"]
    times = app.on("t4")
    assert (times.local_least, times.local_most) == (8.0, 16.0)
    assert times.lookup((2, 1), 8)[0] == 0.9
    assert times.scalability.tolist() == [[3.0, 3.0, 8.0, 1.0, 0.3]]
    assert (app.training.base, app.training.most, app.training.epochs) == (8.0, 32.0, 2)


def test_a_nameless_type_serves_for_all(tmp_path: Path) -> None:
    app = read_profiles(folder(tmp_path, placements=PLACEMENTS))["net"]
    assert app.on("anything").lookup((1,), 16)[0] == 0.8


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"placements-t4": PLACEMENTS.replace("0.9", "-0.9")}, "placements-t4.csv:4: field 'step_time': -0.9 is not above zero"),
        ({"placements-t4": PLACEMENTS.replace("0.9", "nan")}, "nan is not possible"),
        ({"placements-t4": PLACEMENTS.replace("21", "2,1")}, "is no placement|is not a number|of 4 fields"),
        ({"placements-t4": PLACEMENTS.replace("21", "20")}, "'20' is no placement"),
        ({"placements-t4": PLACEMENTS.replace("sync_time", "sync")}, "has no column 'sync_time'"),
        ({"placements-t4": PLACEMENTS.splitlines()[0]}, "has no rows"),
        ({"scalability-t4": SCALABILITY.replace("0.3", "-0.3")}, "-0.3 is below zero"),
        ({"validation-8": VALIDATION.replace("20,20", "9,20")}, "9 is no progress beyond 10"),
        ({"validation-8": VALIDATION.replace("3\n", "inf\n")}, "inf is not possible"),
        ({"validation-x": VALIDATION}, "'x' is no batch"),
    ],
)
def test_broken_files_are_named(tmp_path: Path, files: dict[str, str], told: str) -> None:
    with pytest.raises(GantlineError) as caught:
        read_profiles(folder(tmp_path, **files))["net"].on("t4")
    assert any(part in str(caught.value) for part in told.split("|"))


def test_folders_without_profiles_are_refused(tmp_path: Path) -> None:
    with pytest.raises(GantlineError, match="holds no profiles"):
        read_profiles(tmp_path)
    with pytest.raises(GantlineError, match="no such folder"):
        read_profiles(tmp_path / "none")


def test_the_published_profiles_are_read() -> None:
    profiles = read_profiles(reference("sia/profiles"))
    found = {name: profiles[name].training for name in ("bert", "cifar10", "ncf")}
    assert {name: (t.base, t.most, t.epochs) for name, t in found.items()} == {
        "bert": (12, 384, 2),
        "cifar10": (128, 4096, 100),
        "ncf": (256, 32768, 10),
    }
    assert len(profiles["imagenet"].on("aws").placements) == 108
    assert found["cifar10"].edges[-1] == pytest.approx(39062.908)
