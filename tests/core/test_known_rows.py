"""Rows that were written before are written as if for the first time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.columns import Job
from gantline.core.job_json import KnownRows
from gantline.core.snapshot_json import decode_snapshot, encode_snapshot
from gantline.core.tables import tables_behind
from gantline.live.scheduler.view import Growing


@pytest.mark.parametrize("column", [Job.ESTIMATE, Job.PRIORITY, Job.DEADLINE])
def test_whoever_has_changed_is_written_anew(column: int) -> None:
    now = decode_snapshot({"now": 9, "cluster": "1x4", "jobs": [{"id": "a", "gpus": 2}, {"id": "b", "gpus": 3}]})
    tables, known = tables_behind(now), KnownRows()
    known.look(tables)
    encode_snapshot(now, known)
    tables.F[column, 1] = 77.0
    known.look(tables)
    assert encode_snapshot(now, known) == encode_snapshot(now)
    assert known.written == 3


@pytest.mark.parametrize("name", ["util", "loss"])
def test_a_row_with_another_metric_is_written_anew(name: str) -> None:
    jobs = [{"id": "a", "gpus": 2, "metrics": {"util": 3}}, {"id": "b", "gpus": 3, "metrics": {"util": 4}}]
    now = decode_snapshot({"now": 9, "cluster": "1x4", "jobs": jobs})
    tables, known = tables_behind(now), KnownRows()
    known.look(tables)
    encode_snapshot(now, known)
    tables.metric(name)[1] = 77.0
    known.look(tables)
    assert encode_snapshot(now, known) == encode_snapshot(now)
    assert known.written == 3


@given(st.lists(st.tuples(st.integers(0, 400), st.integers()), max_size=600))
def test_a_mapping_made_of_layers_is_the_mapping(changes: list[tuple[int, int]]) -> None:
    plain, grown = {0: 0}, Growing({0: 0})
    seen = []
    for number, (key, value) in enumerate(changes):
        plain[key] = value
        grown[key] = value
        if number % 50 == 0:
            seen.append((dict(plain), grown.read_only()))
    for before, shown in [*seen, (plain, grown.read_only())]:
        assert list(shown.items()) == list(before.items())
        assert list(reversed(shown)) == list(reversed(before))
        assert len(shown) == len(before)
        assert all(key in shown and shown.get(key) == before[key] for key in before)
        assert 1000 not in shown
