"""Links that gangs share, by circles in place of flows: `--performance link-circles`, a fast stand-in for `shared-links`.

Each link is looked at alone, and a gang is as slow as on the worst of its links. It is exact for two jobs at the full rate of one link;
`docs/links.md` has its error elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from gantline.core.arrays import Floats
from gantline.models.circles import Circle, stretched
from gantline.models.link_flows import Flow
from gantline.models.link_gangs import slowdowns
from gantline.models.model import Gangs, PerformanceModel
from gantline.models.shared_links import rates_by


@lru_cache(maxsize=1 << 14)
def circle_times(flows: tuple[Flow, ...], capacity: tuple[float, ...]) -> Floats:
    """Seconds of an iteration of each, the worst over its links."""
    found = np.array([flow.compute + flow.network for flow in flows])
    for link, most in enumerate(capacity):
        there = [at for at, flow in enumerate(flows) if link in flow.links]
        found[there] = np.maximum(found[there], stretched([circle_of(flows[at], most) for at in there], most))
    return found


def circle_of(flow: Flow, most: float) -> Circle:
    """A job on one link, which has so much."""
    return Circle(flow.compute + flow.network, flow.network, flow.bandwidth if np.isfinite(flow.bandwidth) else most, flow.shift)


@dataclass(frozen=True)
class LinkCircles(PerformanceModel):
    """Gangs are as much slower as what they lose on the worst of their links while they communicate."""

    about_everyone: ClassVar[bool] = True

    def rates(self, gangs: Gangs) -> tuple[Floats, Floats]:
        return rates_by(gangs, slowdowns(gangs.everyone, circle_times))
