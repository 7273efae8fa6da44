"""How runs are measured: which jobs count, what devices cost and draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gantline.lab.report.frames import RunLike
from gantline.lab.report.metrics.fairness import RhoDefinition
from gantline.lab.report.metrics.measure import measure
from gantline.lab.report.metrics.window import Window


@dataclass(frozen=True)
class Measuring:
    """`measure` with the given options; None means the run's own value."""

    window: Window | None = None
    prices: Mapping[str, float] | None = None
    watts: Mapping[str, float] | None = None
    rho: RhoDefinition = "share"

    def __call__(self, run: RunLike) -> dict[str, float]:
        return measure(run, window=self.window, rho=self.rho, prices=self.prices, watts=self.watts)
