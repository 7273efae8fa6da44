"""Units, memory and randomness: the small values everything is made of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core import memory
from gantline.core.errors import UsageError
from gantline.core.fields import human_seconds, seconds
from gantline.core.rng import stream


@pytest.mark.parametrize(
    ("text", "value"),
    [("90", 90), ("90s", 90), ("15m", 900), ("1.5h", 5400), ("2d", 172800), ("01:00:00", 3600), ("1-02:00", 93600), ("10:30", 630)],
)
def test_times_as_people_write_them(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "soon", "5 parsecs", "-3"])
def test_what_is_no_time_is_refused_with_examples(text):
    with pytest.raises(UsageError, match="HH:MM:SS"):
        seconds(text)


def test_times_are_shown_in_the_unit_a_person_would_choose():
    assert [human_seconds(value) for value in (5, 600, 86400, 1e6, math.nan)] == ["5.0 s", "10.0 min", "24.0 h", "11.6 d", "-"]


KEYS = st.text().filter(lambda key: not key.startswith("__"))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text().filter(lambda key: not key.startswith("__")), inner)
    ),
    max_leaves=12,
)


@given(PLAIN)
def test_memory_survives_json_without_loss(value):
    again = memory.decode(memory.encode(value))
    assert memory.encode(again) == memory.encode(value)
    assert type(again) is type(value)


def test_arrays_keep_type_and_shape():
    value = np.array([[1.5, np.nan], [np.inf, -0.0]], dtype=np.float32)
    again = memory.decode(memory.encode({"a": value}))["a"]
    assert again.dtype == value.dtype
    assert np.array_equal(again, value, equal_nan=True)


def test_what_is_not_plain_is_named_with_its_place():
    with pytest.raises(UsageError, match=r"memory\['users'\]\[1\] holds a set"):
        memory.plain({"users": [1, {2}]})


def test_a_stream_depends_on_seed_decision_and_name_and_on_nothing_else():
    first = stream(7, 3, "lottery").random(4)
    stream(7, 3, "other").random(100)
    assert (stream(7, 3, "lottery").random(4) == first).all()
    for other in (stream(8, 3, "lottery"), stream(7, 4, "lottery"), stream(7, 3, "raffle")):
        assert (other.random(4) != first).all()
