"""Linear interpolation between scattered points: within the simplices of their Delaunay triangulation.

Points on a grid have many triangulations, and Qhull's simplices may overlap a little where it had to choose, so it matters which of
them a point is said to lie in. It is the one that SciPy's interpolator finds: climb to the simplex whose lifted plane is nearest below the
point, then walk towards the point, and look through all simplices where the walk ends in a flat one. SciPy itself asks LAPACK for the
inverse of every simplex's matrix, which takes half a minute where its threads spin on busy cores; three by three they are cross products.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.jit import kernel

_SLACK: Final = 100.0 * 2.0**-52  # by which a point may lie outside of a simplex
_MORE_SLACK: Final = _SLACK**0.5  # towards a neighbour that is flat
_WORST: Final = 1.0 / (1000.0 * 2.0**-52)  # condition of a matrix; worse counts as flat


class Mesh(NamedTuple):
    """Simplices: their corners, neighbours opposite to each corner (-1: none), planes of the lifted points, and ways to coordinates."""

    corners: Ints
    neighbours: Ints
    planes: Floats  # [simplex, 5]
    inverse: Floats  # [simplex, 3, 3]; NaN: flat
    origin: Floats  # [simplex, 3]
    box: Floats  # [2, 3]
    lift: Floats  # scale and shift of the paraboloid


class Triangulation:
    """Points in three dimensions with values, and what lies between them. Raises ValueError where they span no volume."""

    def __init__(self, points: Floats, values: Floats) -> None:
        from scipy.spatial import Delaunay, QhullError  # slow to import, and most runs have no profiles

        try:
            found = Delaunay(points)
        except QhullError as error:
            raise ValueError("the points span no volume") from error
        corners = found.simplices.astype(np.int64)
        inverse, origin = _inverses(points[corners])
        self._values = values
        self._mesh = Mesh(
            corners,
            found.neighbors.astype(np.int64),
            np.ascontiguousarray(found.equations),
            inverse,
            origin,
            np.stack((points.min(axis=0), points.max(axis=0))),
            np.array([found.paraboloid_scale, found.paraboloid_shift]),
        )

    def at(self, point: Floats) -> Floats:
        """The values at a point; NaN outside of all simplices."""
        parts = np.zeros(4)
        inside = find_simplex(self._mesh, point, parts)
        if inside < 0:
            return np.full(self._values.shape[1], np.nan)
        corners = self._values[self._mesh.corners[inside]]
        found: Floats = parts[0] * corners[0] + parts[1] * corners[1] + parts[2] * corners[2] + parts[3] * corners[3]
        return found


def _inverses(ends: Floats) -> tuple[Floats, Floats]:
    """The inverse of each simplex's matrix of edges from its last corner, and that corner."""
    origin = np.ascontiguousarray(ends[:, 3])
    a, b, c = (ends[:, k] - origin for k in range(3))
    rows = np.stack((np.cross(b, c), np.cross(c, a), np.cross(a, b)), axis=1)
    volume = np.einsum("ni,ni->n", a, rows[:, 0])
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = rows / volume[:, None, None]
    length = np.stack([np.abs(edge).sum(axis=1) for edge in (a, b, c)]).max(axis=0)
    condition = length * np.abs(inverse).sum(axis=1).max(axis=1)
    return np.where((condition < _WORST)[:, None, None], inverse, np.nan), origin


@kernel
def find_simplex(mesh: Mesh, point: Floats, parts: Floats) -> int:
    """The simplex that a point lies in, with its barycentric coordinates in ``parts``; -1 outside."""
    for axis in range(3):
        if point[axis] < mesh.box[0, axis] - _SLACK or point[axis] > mesh.box[1, axis] + _SLACK:
            return -1
    here, simplices = _climb(mesh, point), mesh.corners.shape[0]
    for _ in range(1 + simplices // 4):
        inside, k = True, 0
        while k < 4:
            _coordinate(mesh, here, point, parts, k)
            if parts[k] < -_SLACK:
                break
            inside = inside and parts[k] <= 1.0 + _SLACK
            k += 1
        if k < 4:
            here = mesh.neighbours[here, k]
            if here < 0:
                return -1
        elif inside:
            return int(here)
        else:
            break
    return _look_through(mesh, point, parts)


@kernel
def _climb(mesh: Mesh, point: Floats) -> int:
    """The simplex near the point by the planes of the lifted points, as far as neighbours lead."""
    here = 0
    best = _above(mesh, here, point)
    changed = True
    while changed and best <= 0.0:
        changed = False
        for k in range(4):
            other = mesh.neighbours[here, k]
            if other >= 0:
                height = _above(mesh, other, point)
                if height > best + _SLACK * (1.0 + abs(best)):
                    here, best, changed = other, height, True
    return int(here)


@kernel
def _above(mesh: Mesh, simplex: int, point: Floats) -> float:
    plane = mesh.planes[simplex]
    lifted = (point[0] * point[0] + point[1] * point[1] + point[2] * point[2]) * mesh.lift[0] + mesh.lift[1]
    return float(plane[4] + plane[0] * point[0] + plane[1] * point[1] + plane[2] * point[2] + plane[3] * lifted)


@kernel
def _coordinate(mesh: Mesh, simplex: int, point: Floats, parts: Floats, k: int) -> None:
    """One barycentric coordinate; the last follows from the others."""
    if k == 3:
        parts[3] = 1.0 - parts[0] - parts[1] - parts[2]
        return
    parts[k] = 0.0
    for axis in range(3):
        parts[k] += mesh.inverse[simplex, k, axis] * (point[axis] - mesh.origin[simplex, axis])


@kernel
def _contains(mesh: Mesh, simplex: int, point: Floats, parts: Floats, flat: int) -> bool:
    """Whether a point lies in a simplex, with more slack towards a flat neighbour."""
    for k in range(4):
        _coordinate(mesh, simplex, point, parts, k)
    for k in range(4):
        slack = _MORE_SLACK if flat >= 0 and mesh.neighbours[simplex, k] == flat else _SLACK
        if not -slack <= parts[k] <= 1.0 + _SLACK:
            return False
    return True


@kernel
def _look_through(mesh: Mesh, point: Floats, parts: Floats) -> int:
    """The first simplex that contains the point; for a flat one its neighbours are asked."""
    for simplex in range(mesh.corners.shape[0]):
        if not np.isnan(mesh.inverse[simplex, 0, 0]):
            if _contains(mesh, simplex, point, parts, -1):
                return simplex
            continue
        for k in range(4):
            other = mesh.neighbours[simplex, k]
            if other >= 0 and not np.isnan(mesh.inverse[other, 0, 0]) and _contains(mesh, other, point, parts, simplex):
                return int(other)
    return -1
