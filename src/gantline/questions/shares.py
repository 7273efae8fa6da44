"""The quantiles of all futures that a forecast reports."""

from __future__ import annotations

from typing import Final

#: the share of futures in which it has come by then
SHARES: Final = {"p50": 0.5, "p90": 0.9}
#: where the middle nine tenths of all futures begin and end
NINE_TENTHS: Final = (0.05, 0.95)
