"""The options cell is read back as it was written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.errors import UsageError
from gantline.traces.options import WrittenOption, format_options, parse_options
from gantline.traces.trace import Trace

TEXTS = "v100:4=3600|cpu:0/20=9000|a100:1/8/64=12.5"


def test_alternatives_are_read_with_their_resources() -> None:
    assert parse_options(TEXTS) == (
        WrittenOption("v100", 4, 3600.0),
        WrittenOption("cpu", 0, 9000.0, cpus=20.0),
        WrittenOption("a100", 1, 12.5, cpus=8.0, memory=64.0),
    )
    assert parse_options("") == ()
    assert format_options(parse_options(TEXTS)) == TEXTS


@pytest.mark.parametrize("text", ["v100", "v100:4", "v100:x=1", ":4=1", "v100:4=1||", "v100:1/2/3/4/5=6", "v100:4=-1"])
def test_what_is_no_alternative_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="type:gpus"):
        parse_options(text)


numbers = st.floats(0, 1e12, allow_nan=False)


@given(
    st.lists(
        st.builds(WrittenOption, st.sampled_from(["v100", "A100-80GB", "cpu"]), st.integers(0, 99), *[numbers] * 4, st.integers(0, 9)),
        min_size=1,
    )
)
def test_every_option_round_trips_and_passes_the_trace_check(options: list[WrittenOption]) -> None:
    text = format_options(options)
    assert list(parse_options(text)) == options
    Trace.from_records([{"job": "a", "arrival": 0, "gpus": 1, "duration": 1, "options": text}])
