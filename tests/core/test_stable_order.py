"""Sorting inside kernels is NumPy's stable sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gantline.core.stable_order import stable_order


@given(st.integers(0, 9999), st.integers(0, 140), st.integers(0, 3), st.sampled_from([2, 9, 10**15]), st.booleans())
def test_equal_numbers_stay_in_the_order_they_had(seed: int, count: int, before: int, values: int, nearly: bool) -> None:
    keys = np.random.default_rng(seed).integers(-values, values, before + count + 2)
    if nearly:  # all but a few in order already
        keys[before : before + count - 5].sort()
    order, spare = np.full(count + 1, -7), np.empty(count + 1, np.int64)
    stable_order(keys, before, count, order, spare)
    assert order[:count].tolist() == np.argsort(keys[before : before + count], kind="stable").tolist()
    assert order[count] == -7
