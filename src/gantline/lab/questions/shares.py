"""The quantiles of all futures that a forecast reports."""

from __future__ import annotations

import math
from typing import Final

#: the share of futures in which it has come by then
SHARES: Final = {"p50": 0.5, "p90": 0.9}
#: where the middle nine tenths of all futures begin and end
NINE_TENTHS: Final = (0.05, 0.95)


def place_of(share: float, draws: int) -> int:
    """The place among sorted draws, from zero, which one more future precedes with at least this chance; else the last."""
    return min(math.ceil(round(share * (draws + 1), 9)), draws) - 1
