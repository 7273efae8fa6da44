"""The quantiles of all futures that a forecast reports."""

from __future__ import annotations

import math
from typing import Final

#: the share of futures in which it has come by then
SHARES: Final = {"p50": 0.5, "p90": 0.9}
#: where the middle nine tenths of all futures begin and end
NINE_TENTHS: Final = (0.05, 0.95)


def place_of(share: float, draws: int) -> int:
    """Which of so many draws, in order from zero, one more future comes before with at least this chance; the last where none is enough."""
    return min(math.ceil(round(share * (draws + 1), 9)), draws) - 1
