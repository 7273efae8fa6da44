"""Voda's own answers, case by case, and the same cases without its slips."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

from tests.cli.conftest import Cli, cli, folder  # noqa: F401
from tests.systems.voda.vectors import NAMES, grants_of, snapshot_of, vectors

from gantline.core.snapshot_json import decode_snapshot
from gantline.policies.registry import make_policy


def answer(vector: dict[str, Any], compat: str, now: float = 0.0) -> dict[str, int]:
    snapshot = decode_snapshot(snapshot_of(vector) | {"now": now})
    return grants_of(make_policy(NAMES[vector["algorithm"]], {"compat": compat}).decide(snapshot), snapshot.jobs.ids)


@cache
def answers(compat: str) -> list[dict[str, int]]:
    """Ours to every case, in order."""
    return [answer(vector, compat, 0.0) for vector in vectors()]


def test_every_recorded_answer_is_given_by_the_letter() -> None:
    wrong, right = [], Counter[str]()
    for vector, given in zip(vectors(), answers("voda")):
        if "result" in vector:
            right[vector["algorithm"]] += (same := given == vector["result"])
            wrong += [] if same else [(vector["id"], vector["algorithm"])]
    assert not wrong
    assert set(right) == set(NAMES)


def test_sizes_respect_minimum_and_maximum_also_where_the_original_panics() -> None:
    panics = 0
    for vector, *given_by in zip(vectors(), answers("none"), answers("voda")):
        for given in given_by:
            assert sum(given.values()) <= vector["total_gpus"]
            assert all(n == 0 or job["min"] <= n <= job["max"] for job in vector["jobs"] if (n := given[job["name"]]) or True)
        panics += "panic" in vector
    assert panics > 20


def test_without_ties_and_slips_the_default_is_the_original() -> None:
    """FIFO and its elastic form have nothing to repair where they answer; the others differ where ties or slips decide."""
    cases = [(vector, given) for vector, given in zip(vectors(), answers("none")) if "result" in vector]
    same = Counter((vector["algorithm"], given == vector["result"]) for vector, given in cases)
    assert same["FIFO", False] == same["ElasticFIFO", False] == same["FfDLOptimizer", False] == 0
    for algorithm in NAMES:
        assert same[algorithm, True] > same[algorithm, False]


def test_elastic_tiresias_goes_on_with_the_job_that_it_has_just_served() -> None:
    """Its list stays as the last sort left it, so a job that falls back to another's gain is still before it."""
    common = {"submit_s": 0, "first_start_s": 1, "priority": 0, "num_proc": 1, "min": 1, "max": 3, "remaining_s": 100}
    steady, steep = common | {"name": "a", "speedup": [0, 1, 2, 3, 4]}, common | {"name": "b", "speedup": [0, 1, 3, 4, 5]}
    case = {"algorithm": "ElasticTiresias", "total_gpus": 4, "jobs": [steady, steep]}
    assert answer(case, "voda") == {"a": 1, "b": 3}
    assert answer(case, "none") == {"a": 2, "b": 2}


def test_the_command_line_gives_the_same_answers(cli: Cli, folder: Path) -> None:  # noqa: F811
    cases = [vector for vector in vectors() if "result" in vector][::11]
    assert {case["algorithm"] for case in cases} == set(NAMES)
    for vector in cases:
        (folder / "case.json").write_text(json.dumps(snapshot_of(vector)))
        told = cli("decide", "case.json", "--policy", NAMES[vector["algorithm"]], "--set", "compat=voda", "-o", "json").json
        assert {one["job"]: len(one["devices"]) for one in told["outcome"]} == vector["result"]
        table = told["plan"]["assignments"]
        named = dict.fromkeys(told["jobs"], 0) | {told["jobs"][job]: gpus for job, gpus in zip(table["job"], table["gpus"])}
        assert named == vector["result"]
