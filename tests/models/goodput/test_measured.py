"""Measured step times: exact where measured, on a line between batches, triangulated between shapes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import scipy
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

from gantline.core.errors import NotFoundError
from gantline.models.goodput.measured import Application, Profiles, StepTimes, Training, least_rotation, packed_shape
from gantline.models.goodput.triangulation import Triangulation


def rows(*values: tuple[float, float, float]) -> np.ndarray:
    return np.array(values)


def plane(nodes: float, replicas: float, batch: float) -> float:
    return 0.1 + 0.02 * nodes + 0.01 * replicas + 0.001 * batch


def flat_world() -> StepTimes:
    """Times on a plane, so that every triangulation must give the plane."""
    shapes = [(1,), (2,), (4,), (1, 1), (2, 4), (4, 4), (1, 2, 4), (4, 4, 4)]
    tables = {s: rows(*((b, plane(len(s), sum(s), b), 0.01) for b in (8.0, 16.0, 64.0))) for s in shapes}
    more = np.array([(n, 4 * n, b, plane(n, 4 * n, b), 0.01) for n in (4, 8, 16) for b in (8.0, 64.0)])
    return StepTimes(tables, more)


def test_shapes_are_rings() -> None:
    assert least_rotation((4, 1, 2)) == (1, 2, 4)
    assert least_rotation((4, 2, 1)) == (1, 4, 2)
    assert packed_shape(10, 4) == (4, 4, 2)


def test_measured_shapes_are_linear_in_the_batch_and_constant_beyond() -> None:
    times = StepTimes({(1, 2, 4): rows((10.0, 1.0, 0.5), (20.0, 3.0, 0.7))})
    step, sync = times.lookup((4, 1, 2), [5, 10, 15, 20, 50])
    assert step.tolist() == [1.0, 1.0, 2.0, 3.0, 3.0]
    assert sync.tolist() == pytest.approx([0.5, 0.5, 0.6, 0.7, 0.7])


def test_other_shapes_lie_between_the_measured_ones() -> None:
    times = flat_world()
    assert not times.is_measured((2, 2))
    assert times.is_measured((4, 1, 2))
    for shape, batch in [((2, 2), 20.0), ((3, 4), 8.0), ((4, 4, 3), 33.0)]:
        assert times.lookup(shape, batch)[0] == pytest.approx(plane(len(shape), sum(shape), batch))


def test_more_nodes_than_measured_count_as_sixteen() -> None:
    times = flat_world()
    assert times.lookup((4,) * 15 + (2, 2), 32.0)[0] == pytest.approx(plane(16, 64, 32.0))


def test_outside_of_what_was_measured_the_nearest_point_counts() -> None:
    assert flat_world().lookup((9, 9), 64.0)[0] == pytest.approx(plane(4, 16, 64.0))
    alone = StepTimes({(1,): rows((8.0, 1.0, 0.0)), (2,): rows((8.0, 1.5, 0.2))})  # all in one plane
    assert alone.lookup((3,), 8.0)[0] == 1.5


def test_epochs_end_at_the_least_progress_of_any_batch() -> None:
    training = Training(
        batches=np.array([8.0, 32.0]),
        progress=np.array([[100.0, 200.0], [98.0, 205.0]]),
        iteration=np.array([[100.0, 200.0], [40.0, 80.0]]),
        square=np.array([[1.0, 2.0], [3.0, 4.0]]),
        variance=np.array([[10.0, 20.0], [30.0, 40.0]]),
    )
    assert training.edges.tolist() == [98.0, 200.0]
    assert training.noise(20.0, 1) == (3.0, 30.0)
    assert training.iterations(20.0, 0) == 70.0
    app = Application("net", training, {"a100": flat_world()}, "folder")
    assert not app.runs_on("a10")
    with pytest.raises(NotFoundError, match="no profile of 'net' on 'a10'"):
        app.on("a10")
    with pytest.raises(NotFoundError, match="no profile of 'nett'"):
        Profiles({"net": app})["nett"]


def test_points_on_a_grid_are_interpolated_in_the_simplex_that_scipy_picks() -> None:
    axes = np.meshgrid([1.0, 2.0, 3.0, 4.0, 8.0], [1.0, 2.0, 4.0, 8.0, 16.0], [8.0, 16.0, 24.0, 64.0], indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    values = np.random.default_rng(3).uniform(1.0, 2.0, (len(points), 2))  # rough, so that another simplex gives another value
    ours, theirs = Triangulation(points, values), LinearNDInterpolator(points, values)
    inside = 0
    for place in product((1, 2, 3, 5, 8, 9), (1, 3, 4, 7, 16), (8, 12, 16, 40, 63.5)):
        found = ours.at(np.array(place, dtype=float))
        inside += int(np.isfinite(found[0]))
        np.testing.assert_allclose(found, in_the_simplex_found(theirs.tri, values, place), rtol=1e-9)
        # Of nine versions of SciPy from 1.10 to 1.18 (none of 1.12) only those of 1.13 interpolate in another simplex than they find: an
        # overlapping one, at one of these places.
        if not scipy.__version__.startswith("1.13."):
            np.testing.assert_allclose(found, theirs(place).reshape(2), rtol=1e-9)
    assert inside == 125  # only nine nodes are outside


def in_the_simplex_found(mesh: Delaunay, values: np.ndarray, place: tuple[float, float, float]) -> np.ndarray:
    """Values at a place by solving for its coordinates in the simplex that SciPy's search says it lies in."""
    simplex = int(mesh.find_simplex(place))
    if simplex < 0:
        return np.full(values.shape[1], np.nan)
    corners = mesh.simplices[simplex]
    return np.linalg.solve(np.vstack((mesh.points[corners].T, np.ones(4))), np.array([*place, 1.0])) @ values[corners]
