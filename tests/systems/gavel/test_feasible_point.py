"""Programs that leave their answer open: the point that is returned is the one at which the artifact's solver stops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from gantline.models.solvers.feasible_point import WIDE, feasible_point
from gantline.systems.gavel.policies.embedded_cones import stopping_point

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


# the same jobs and types: the largest of 0.1 + 3 p and 0.4 + 2 q is to be small, with p and q no less than 1 / throughput
RATIOS = np.zeros((16, 7))
RATIOS[:8, :4] = LIMITS[:8]
RATIOS[8:10, 4:] = [[3, 0, -1], [0, 2, -1]]
RATIOS[[10, 11], :5] = [[-4, -1, 0, 0, -1], [-4, -1, 0, 0, 1]]
RATIOS[[13, 14], 2:6] = [[-2, -1.5, 0, -1], [-2, -1.5, 0, 1]]
RATIO_BOUNDS = np.array([0, 0, 0, 0, 1, 1, 1, 1, -0.1, -0.4, 0, 0, 2, 0, 0, 2])


def test_with_a_goal_and_cones_it_stops_where_ecos_stops() -> None:
    found = stopping_point(np.eye(7)[6], sparse.csc_array(RATIOS), RATIO_BOUNDS, cones=2)
    assert found == pytest.approx([0.37863543, 0.62136457, 0.62136457, 0.37863543, 0.46818534, 0.552278, 1.50455601], abs=2e-8)  # 2.0.14


def test_what_cones_and_limits_do_not_admit_has_no_point() -> None:
    crowded = RATIO_BOUNDS - np.repeat([0.0, 2.0, 0.0], [4, 4, 8])
    assert stopping_point(np.eye(7)[6], sparse.csc_array(RATIOS), crowded, cones=2) is None
