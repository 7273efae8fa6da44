"""What the interior-point method works on, as bundles that compiled functions take (see :mod:`.interior` for the names)."""

from __future__ import annotations

from typing import NamedTuple

from gantline.core.arrays import Floats, Ints

Matrix = tuple[Ints, Ints, Floats]
"""By columns: where each begins, and the row and the value of every entry."""
Factors = tuple[Floats, Floats, Floats, Floats]
"""What elimination leaves: pivots, lowers, border, core."""


class InteriorProgram(NamedTuple):
    """The problem, with everything filled in that was not given."""

    matrix: Matrix
    bound: Floats
    column_weight: Floats
    row_weight: Floats
    gain: Floats
    bend: Floats
    kinds: int
    arrow: bool
    levelled: bool
    num: Floats
    den: Floats
    off: Floats


class Iterate(NamedTuple):
    """Columns, then the slack of every row (``p``), their prices (``q``) and the weights of their barrier terms."""

    p: Floats
    q: Floats
    weight: Floats


class Residuals(NamedTuple):
    """By how much the equations are missed, and the slopes of what the level demands of the rows."""

    dual: Floats
    inverse: Floats
    lack: Floats
    slope: Floats
    pull: float  # of the level
    bow: float


class Step(NamedTuple):
    """Where a step is written: of columns and slacks, and of their prices."""

    dp: Floats
    dq: Floats
