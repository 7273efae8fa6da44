"""Bad throughputs, prices and deadlines from the command line: each is named, nothing is silently zero."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Cli
from tests.systems.gavel.tiny_world import table, trace

CLUSTER = "v100:1,k80:1"
BIG, SMALL = "('big', 1)", "('small', 1)"
Body = dict[str, dict[str, dict[str, Any]]]


def body() -> Body:
    """The tiny world's table as its file."""
    known = table(sizes=(1,))
    rows: Body = {}
    for j, device in enumerate(known.types):
        rows[device] = {}
        for a, key in enumerate(known.keys):
            entry: dict[str, Any] = {"null": float(known.packed.alone[a, j])}
            for b, other in enumerate(known.keys):
                entry[str(other)] = [float(known.packed.paired[a, b, j]), float(known.packed.paired[b, a, j])]
            rows[device][str(key)] = entry
    return rows


def _lack_job(rows: Body) -> None:
    for device in rows.values():
        del device[SMALL]
        for entry in device.values():
            entry.pop(SMALL, None)


def _lack_device(rows: Body) -> None:
    del rows["k80"]


def _lack_pairs(rows: Body) -> None:
    for device in rows.values():
        del device[BIG][SMALL], device[SMALL][BIG]


def _nothing(rows: Body) -> None:
    for device in rows.values():
        for entry in device.values():
            entry[SMALL] = [0.0, 0.0]
        device[SMALL] = {key: 0.0 if key == "null" else [0.0, 0.0] for key in device[SMALL]}


def _one_side(rows: Body) -> None:
    del rows["v100"][BIG][SMALL]


def _one_moves(rows: Body) -> None:
    rows["v100"][BIG][SMALL] = [1.0, 0.0]


def _alone(value: Any) -> Callable[[Body], None]:
    def change(rows: Body) -> None:
        rows["v100"][BIG]["null"] = value

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_lack_job, "no throughput of 'small' with 1 devices"),
        (_lack_device, "job '0': no throughput of ('big', 1) on 'k80'"),
        (_lack_pairs, "no throughput of ('big', 1) next to ('small', 1) on 'v100'"),
        (_nothing, "job '1': ('small', 1) has speed 0 on every device type"),
        (_one_side, "is given from one side only"),
        (_one_moves, "only one of the two makes progress"),
        (_alone(-2.0), "field 'v100 / ('big', 1)': speed -2.0 is not possible"),
        (_alone("fast"), "field 'v100 / ('big', 1)': 'fast' is not a number"),
        (_alone(float("inf")), "speed inf is not possible"),
    ],
)
def test_a_table_that_cannot_be_is_named(change: Callable[[Body], None], words: str, cli: Cli, folder: Path) -> None:
    rows = body()
    change(rows)
    (folder / "speeds.json").write_text(json.dumps(rows))
    trace(("big", 400.0, 0.0), ("small", 400.0, 0.0)).save(folder / "jobs.csv")
    told = simulate(cli, "gavel.max_min_fairness_packed")
    assert told.code in (2, 3)
    assert words in told.err
    assert told.out == ""


def simulate(cli: Cli, policy: str, *more: str, regime: str = "gavel") -> Any:
    way = ("--regime", regime) if regime else ("--round", "60")
    return cli("simulate", "jobs.csv", "--cluster", CLUSTER, "--policy", policy, *way, "--throughputs", "speeds.json", *more)


@pytest.fixture
def world(folder: Path) -> Path:
    (folder / "speeds.json").write_text(json.dumps(body()))
    return folder


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ("v100=1", "no price for device type 'k80'"),
        ("v100=1,k80=free", "k80: 'free' is not a number"),
        ("v100=1,k80=-1", "price -1 is not above 0"),
        ("nowhere.csv", "prices nowhere.csv: no such file"),
    ],
)
def test_prices_that_are_missing_or_wrong_are_named(prices: str, words: str, cli: Cli, world: Path) -> None:
    trace(("big", 400.0, 0.0)).save(world / "jobs.csv")
    told = simulate(cli, "gavel.max_sum_throughput_normalized_by_cost_perf", "--prices", prices)
    assert told.code in (2, 3)
    assert words in told.err


def test_a_deadline_before_the_arrival_is_refused_with_its_line(cli: Cli, world: Path) -> None:
    trace(("big", 400.0, 0.0), ("big", 400.0, 100.0), deadline=[900.0, 950.0]).save(world / "jobs.csv")
    (world / "jobs.csv").write_text((world / "jobs.csv").read_text().replace("950.0", "50.0"))
    told = simulate(cli, "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs", "--prices", "v100=1,k80=1")
    assert told.code == 2
    assert "jobs.csv:3: field 'deadline': deadline 50 is before the arrival at 100" in told.err


def test_a_trace_is_imported_by_a_table_and_mistakes_in_it_are_named(cli: Cli, world: Path) -> None:
    (world / "jobs.trace").write_text("big\tcmd\t.\t--n\t0\t800\t1\t1.0\t-1\t0\nsmall\tcmd\t.\t--n\t0\t600\t1\t1.0\t2\t5\n")
    told = cli("trace", "import", "gavel", "jobs.trace", "jobs.csv", "--throughputs", "speeds.json")
    assert told.code == 0, told.err
    assert simulate(cli, "gavel.isolated").code == 0
    rows = body()
    rows["v100"][BIG]["null"] = "fast"
    (world / "wrong.json").write_text(json.dumps(rows))
    told = cli("trace", "import", "gavel", "jobs.trace", "jobs.csv", "--throughputs", "wrong.json")
    assert told.code == 2
    assert "wrong.json: field 'v100 / ('big', 1)': 'fast' is no speed" in told.err
    assert "has no option 'throughputs'" in cli("trace", "import", "philly", "jobs.trace", "x.csv", "--throughputs", "wrong.json").err
