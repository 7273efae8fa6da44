"""When a job ends because of its loss: the losses it has reported so far in, yes or no out (Blox, EuroSys 2024, section 5.3).

A loss that is not finite (NaN, infinite) is no report: it is left out, and counted by `unusable`. A loss that rises has not fallen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from gantline.core.arrays import Bools, Floats
from gantline.core.errors import NotFoundError, UsageError, near

KINDS = ("never", "plateau", "target")
WINDOW = 10  # reports, unless a rule says how many
_WHERE = "--end-by"


@dataclass(frozen=True)
class EndingRule:
    """One rule. `plateau`: over the last `window` reports the loss has fallen by no more than `bound`; `target`: it is at most `bound`.

    A fall is counted from the report just before the window to the lowest loss in it, so that one noisy report ends no job. Where the
    rule is `relative`, it is a part of the size of that earlier loss.
    """

    kind: Literal["never", "plateau", "target"] = "never"
    bound: float = 0.0
    window: int = WINDOW
    relative: bool = False

    def __str__(self) -> str:
        if self.kind == "never":
            return "never"
        amount = f"{100 * self.bound:.12g}%" if self.relative else f"{self.bound:.12g}"
        return f"target:{amount}" if self.kind == "target" else f"plateau:{amount}@{self.window}"

    def ends(self, reports: ArrayLike) -> bool:
        """Whether a job with these reports, oldest first, has reached its end with the last of them."""
        losses = np.asarray(reports, dtype=np.float64)
        if not losses.size or not np.isfinite(losses[-1]):
            return False
        return bool(self.fires(losses[np.isfinite(losses)])[-1])

    def fires(self, losses: Floats) -> Bools:
        """Whether the rule would end a job with each report; the last axis is that of reports, all of them finite."""
        found = np.zeros(losses.shape, dtype=bool)
        if self.kind == "target":
            found = losses <= self.bound
        elif self.kind == "plateau" and losses.shape[-1] > self.window:
            before = losses[..., : -self.window]
            lowest = np.lib.stride_tricks.sliding_window_view(losses[..., 1:], self.window, axis=-1).min(axis=-1)
            most = self.bound * np.abs(before) if self.relative else self.bound
            found[..., self.window :] = before - lowest <= most
        return found


NEVER = EndingRule()


def unusable(reports: ArrayLike) -> int:
    """How many of these losses are not finite, and so leave every rule as it was."""
    return int((~np.isfinite(np.asarray(reports, dtype=np.float64))).sum())


def find_ending(text: str) -> EndingRule:
    """The rule that ``never``, ``plateau:BOUND[@WINDOW]`` or ``target:LOSS`` means; a bound with a per cent sign is relative."""
    kind, _, rest = text.partition(":")
    if kind == "never" and not rest:
        return NEVER
    if kind == "target":
        return EndingRule("target", _number(rest, "target:0.35"))
    if kind != "plateau":
        raise NotFoundError(f"no rule '{text}'", where=_WHERE, fix=near(kind, KINDS))
    amount, at, window = rest.partition("@")
    relative = amount.endswith("%")
    bound = _number(amount.removesuffix("%"), "plateau:0.1% or plateau:0.002@20") / (100.0 if relative else 1.0)
    if bound < 0.0:
        raise UsageError(f"'{amount}' is below zero", where=_WHERE, fix="a loss that falls by no more than this has ended: 0.1% or 0.002")
    if at and not (window.isascii() and window.isdigit() and 1 <= int(window) <= 1_000_000):
        raise UsageError(f"a window of '{window}' reports", where=_WHERE, fix="write how many reports, 1 or more: plateau:0.1%@20")
    return EndingRule("plateau", bound, int(window) if at else WINDOW, relative)


def _number(text: str, example: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = np.nan
    if not np.isfinite(found):
        raise UsageError(f"'{text}' is not a number", where=_WHERE, fix=f"for instance {example}")
    return found
