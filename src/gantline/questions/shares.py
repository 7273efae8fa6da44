"""The quantiles of all futures that a forecast reports."""

from __future__ import annotations

from typing import Final

#: the share of futures in which it has come by then
SHARES: Final = {"p50": 0.5, "p90": 0.9}
