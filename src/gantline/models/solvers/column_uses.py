"""What each column of a program takes of which resources: a bundle names a few machines of hundreds, so the others are left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Floats, Ints


class ColumnUses(NamedTuple):
    """What column k takes are entries [first[k], first[k + 1]), by rising resource."""

    first: Ints
    resource: Ints
    amount: Floats

    @staticmethod
    def of(use: Floats) -> ColumnUses:
        """The entries of columns x resources that are not zero."""
        column, resource = np.nonzero(use)
        first = np.searchsorted(column, np.arange(len(use) + 1))
        return ColumnUses(first, resource, use[column, resource])
