"""Pairs in the form of Gavel's files: speeds by device type and gang size, and pairs that cannot share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gantline import simulate
from gantline.core.errors import GantlineError
from gantline.models.sharing.pair_model import TypedPairModel, typed_pair_model
from gantline.models.sharing.throughput_table import ThroughputTable
from gantline.simulator.run import Run
from gantline.traces.files.speeds import read_pair_profiles

ALONE = {"calm": 10.0, "busy": 8.0, "large": 4.0}
#: what the first keeps of its speed beside the second; where nothing is said the two cannot share
KEPT = {("calm", "calm"): 0.98, ("calm", "busy"): 0.95, ("busy", "calm"): 0.96, ("busy", "busy"): 0.95}


def body(*types: str, leave_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A table of gangs of one and two devices; on every further type, and with two devices, pairs are a twentieth slower."""
    found: dict[str, Any] = {}
    for slower, name in enumerate(types):
        for size in (1, 2):
            part = 1.0 - 0.05 * (slower + size - 1)
            for own in ALONE:
                row: dict[str, Any] = {"null": ALONE[own]}
                for other in ALONE:
                    if leave_out != {own, other}:
                        speeds = [ALONE[a] * KEPT.get((a, b), 0.0) * part for a, b in ((own, other), (other, own))]
                        row[f"('{other}', {size})"] = speeds
                found.setdefault(name, {})[f"('{own}', {size})"] = row
    return found


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.json"
    path.write_text(json.dumps(body("v100", "k80")))
    return path


def jobs(*models: str, gpus: int = 1) -> list[dict[str, Any]]:
    return [{"job": f"j{k}", "arrival": 0.0, "gpus": gpus, "duration": 1000.0, "model": name} for k, name in enumerate(models)]


def run(some: list[dict[str, Any]], cluster: str, profiles: Path, policy: str = "lucid", **settings: Any) -> Run:
    settings = {"quiet": 0.0, "profile": 0.0} if policy == "lucid" else settings
    found: Run = simulate(some, cluster, policy, settings=settings, performance="pairs", profiles=str(profiles))
    return found


@pytest.mark.parametrize(("cluster", "gpus", "kept"), [("v100:1x1", 1, 0.98), ("k80:1x1", 1, 0.98 * 0.95), ("v100:1x2", 2, 0.98 * 0.95)])
def test_a_pair_is_as_fast_as_it_was_on_this_type_with_so_many_devices(table: Path, cluster: str, gpus: int, kept: float) -> None:
    found = run(jobs("calm", "calm", gpus=gpus), cluster, table.parent)

    assert found.jobs["finish"].to_list() == pytest.approx([1000.0 / kept] * 2)


def test_jobs_that_cannot_share_wait_for_each_other(table: Path) -> None:
    assert run(jobs("calm", "large"), "v100:1x1", table).jobs["finish"].to_list() == [1000.0, 2000.0]


def test_a_trial_of_two_jobs_that_cannot_share_is_undone(table: Path) -> None:
    found = run(jobs("calm", "large"), "v100:1x1", table, policy="gandiva.introspective", slice=60.0)

    assert max(found.jobs["finish"]) == pytest.approx(2060.0)  # one slice in which neither makes progress


def test_a_trace_of_gavel_names_what_jobs_train_by_its_key(table: Path) -> None:
    keyed = [{**one, "model": "Calm", "throughput_key": "('calm', 1)"} for one in jobs("", "")]

    assert run(keyed, "v100:1x1", table).jobs["finish"].to_list() == pytest.approx([1000.0 / 0.98] * 2)


def test_a_pair_that_was_not_measured_is_estimated_and_zeros_stay_apart() -> None:
    def without(*pair: str) -> TypedPairModel:
        return typed_pair_model(ThroughputTable.of(body("v100", leave_out=frozenset(pair))), ["v100"], {}, {})

    whole, gap, missing = without(), without("calm", "busy"), without("calm", "large")

    assert gap.kept("calm", "busy", 0, 1) == pytest.approx(whole.kept("calm", "busy", 0, 1), abs=0.05)
    assert gap.kept("calm", "large", 0, 1) == 0.0
    assert missing.kept("calm", "large", 0, 1) == 0.0  # as it is beside all others


def test_sizes_that_were_not_measured_have_the_nearest_stand_in() -> None:
    model = typed_pair_model(ThroughputTable.of(body("v100")), ["v100"], {}, {})

    assert model.kept("calm", "calm", 0, 8) == model.kept("calm", "calm", 0, 2) == pytest.approx(0.98 * 0.95)
    assert model.kept("calm", "stranger", 0, 1) is None


@pytest.mark.parametrize(
    ("cluster", "models", "what"),
    [
        ("a100:1x1", ("calm", "calm"), "no device type 'a100' in the table of pairs"),
        ("v100:1x1", ("Calm", "Calm"), "the table has no job of the trace, such as 'Calm'.*'calm'"),
    ],
)
def test_a_table_that_says_nothing_of_the_run_is_refused(table: Path, cluster: str, models: tuple[str, ...], what: str) -> None:
    with pytest.raises(GantlineError, match=what):
        run(jobs(*models), cluster, table)


def test_a_folder_holds_one_table(table: Path) -> None:
    (table.parent / "other.json").write_text("{}")
    with pytest.raises(GantlineError, match=r"has several tables \(other.json, pairs.json\) \(name the table itself\)"):
        read_pair_profiles(table.parent)
    with pytest.raises(GantlineError, match="no such file or folder"):
        run(jobs("calm", "calm"), "v100:1x1", table.parent / "absent")
