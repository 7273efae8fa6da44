"""A program without a goal: the point that is returned is the one at which the artifact's solver stops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gantline.solvers.embedded import WIDE, feasible_point

# two jobs on two types: shares are not negative, a device and a job have one whole each, and both jobs need so much throughput
LIMITS = np.array(
    [
        *(-np.eye(4)),
        [1, 0, 1, 0],
        [0, 1, 0, 1],
        [1, 1, 0, 0],
        [0, 0, 1, 1],
        [-4, -1, 0, 0],
        [0, 0, -2, -1.5],
    ]
)
BOUNDS = np.array([0, 0, 0, 0, 1, 1, 1, 1, -1.2, -0.9])


def test_it_stops_where_ecos_stops() -> None:
    found = feasible_point(sparse.csc_array(LIMITS), BOUNDS)
    assert found == pytest.approx([0.24304281, 0.46508995, 0.39566555, 0.29697945], abs=2e-5)  # ECOS 2.0.14


def test_limits_over_many_columns_are_kept_as_well() -> None:
    rng = np.random.default_rng(1)
    n = 2 * WIDE
    dense = np.vstack([-np.eye(n), np.ones((1, n)), -rng.uniform(0.5, 2.0, (1, n))])
    bound = np.concatenate([np.zeros(n), [8.0, -3.0]])
    found = feasible_point(sparse.csc_array(dense), bound)
    assert found is not None
    assert (dense @ found <= bound + 1e-7).all()


def test_what_cannot_be_met_has_no_point() -> None:
    assert feasible_point(sparse.csc_array(LIMITS), BOUNDS - np.array([0.0] * 8 + [40.0, 0.0])) is None
