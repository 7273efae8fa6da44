"""Throughput tables in Gavel's layout: read whole, checked entry by entry, never a silent zero."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gantline.core.errors import NotFoundError, TraceError
from gantline.models.sharing.throughput_table import ThroughputTable

A, B, C = "('lm', 1)", "('resnet', 1)", "('lm', 2)"
SMALL: dict[str, Any] = {
    "old": {A: {"null": 2.0, A: [1.0, 1.0], B: [1.5, 0.5]}, B: {"null": 1.0, A: [0.5, 1.5], B: [0, 0]}, C: {"null": 3.0}},
    "new": {A: {"null": 8.0, A: [5.0, 5.0], B: [6.0, 2.0]}, B: {"null": 4.0, A: [2.0, 6.0], B: [2.5, 2.5]}, C: {"null": 15.0}},
    "new_unconsolidated": {C: {"null": 9.0}},
}
FILE = Path(__file__).parents[2].parent / "shared/reference/gavel/throughputs/simulation_throughputs.json"


def small(**changes: Any) -> ThroughputTable:
    return ThroughputTable.of(copy.deepcopy(SMALL) | changes, "table.json")


def test_any_device_names_and_speeds_alone() -> None:
    table = small()
    assert table.types == ("old", "new")
    rows = np.array([table.key("lm", 1), table.key("lm", 2)])
    assert table.alone(rows, ["new", "old"]).tolist() == [[8, 2], [15, 3]]


def test_gangs_across_nodes_have_their_own_speeds() -> None:
    table = small()
    assert table.spread.alone[table.key("lm", 2), table.types.index("new")] == 9


def test_what_is_not_there_is_named_with_what_is_near() -> None:
    table = small()
    with pytest.raises(NotFoundError, match=r"'lm' with 4 devices.*sizes \[1, 2\]"):
        table.key("lm", 4)
    with pytest.raises(NotFoundError, match="did you mean 'resnet'"):
        table.key("resne", 1)
    with pytest.raises(NotFoundError, match="no device type 'newer'"):
        table.alone(np.array([0]), ["newer"])


def test_a_job_type_that_one_device_type_lacks_is_refused_only_when_asked_for() -> None:
    old = copy.deepcopy(SMALL["old"])
    del old[C]
    table = small(old=old)
    row = np.array([table.key("lm", 2)])
    assert table.alone(row, ["new"]).tolist() == [[15]]
    with pytest.raises(NotFoundError, match=r"table.json: no throughput of 'lm' with 2 devices on 'old' .*write 0"):
        table.alone(row, ["old"])


@pytest.mark.parametrize(
    ("entry", "value", "words"),
    [
        ((A, "null"), -1.0, ["old / ('lm', 1)", "-1.0", "0 or more"]),
        ((A, "null"), "fast", ["old / ('lm', 1)", "'fast' is not a number"]),
        ((A, "null"), float("nan"), ["nan", "not possible"]),
        ((A, A), [1.0], ["old / ('lm', 1) / ('lm', 1)", "not a pair of speeds"]),
        ((A, B), [1.5, 0], ["only one of the two"]),
        ((A, B), [1.5, 0.6], ["differs from what the other side says"]),
        ((A, C), [1.0, 1.0], ["different size"]),
        ((A, "('gone', 1)"), [1.0, 1.0], ["not in the table"]),
        ((A, "lm"), [1.0, 1.0], ["'lm' is no job type", "gang size"]),
    ],
)
def test_mistakes_are_named_by_device_and_job(entry: tuple[str, str], value: Any, words: list[str]) -> None:
    old = copy.deepcopy(SMALL["old"])
    old[entry[0]][entry[1]] = value
    with pytest.raises(TraceError) as refusal:
        small(old=old)
    for word in ["table.json", *words]:
        assert word in str(refusal.value)


def test_a_pair_given_from_one_side_is_refused() -> None:
    old = copy.deepcopy(SMALL["old"])
    del old[B][A]
    with pytest.raises(TraceError, match=r"one side only.*make .*'resnet', 1.* agree"):
        small(old=old)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "holds no device types"),
        ('{"a": 3}', "holds no job types"),
        ('{"a": {"(\'x\', 1)": {}}}', "has no speed alone"),
        ('{"a": {"(\'x\', 0)": {"null": 1}}}', "is no job type"),
        ('{"a_unconsolidated": {}}', "without speeds within one"),
    ],
)
def test_text_that_is_no_table_is_refused(body: str, words: str) -> None:
    with pytest.raises(TraceError, match=words):
        ThroughputTable.parse(body, "t.json")


@pytest.mark.skipif(not FILE.exists(), reason=f"Gavel's throughput table is not at {FILE}")
def test_gavels_own_table_is_read_whole() -> None:
    text = FILE.read_text()
    table = ThroughputTable.parse(text, FILE.name)
    assert set(table.types) == {"k80", "p100", "v100"}
    assert len(table.keys) == 83
    assert int((table.packed.alone == 0).sum()) == 3  # ResNet-50 with batch 128 on K80s, gangs of 2, 4 and 8
    assert int((~np.isnan(table.packed.paired)).sum()) == 3 * 1759
    body = json.loads(text)
    row = table.key("ResNet-18 (batch size 16)", 1)
    assert table.alone(np.array([row]), ["k80"])[0, 0] == body["k80"]["('ResNet-18 (batch size 16)', 1)"]["null"]
