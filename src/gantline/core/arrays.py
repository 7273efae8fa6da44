"""The array types that every room speaks of, defined once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Bools = NDArray[np.bool_]
