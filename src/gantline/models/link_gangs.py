"""Gangs that share links as performance models see them: which meet, directly or through others, and in which phase each is.

A gang that a plan shifts (a group and an offset) begins its iterations at its offset, as CASSINI's agents see to. Any other begins where
it happens to: at a part of its iteration that only its row decides, so that equal runs are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from gantline.core.arrays import Floats
from gantline.core.traffic import Traffic
from gantline.models.link_flows import Flow
from gantline.models.model import Gangs

_GOLDEN = 0.6180339887498949  # multiples of it are spread evenly over a circle

Times = Callable[[tuple[Flow, ...], tuple[float, ...]], Floats]


def own_phase(row: int) -> float:
    """The part of an iteration at which a gang that nothing shifts begins."""
    return row * _GOLDEN % 1.0


def companies(links: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Gangs that meet on links, directly or through others, each once and in order; those without a link are left out."""
    parent: dict[int, int] = {}

    def root(link: int) -> int:
        while parent.setdefault(link, link) != link:
            link = parent[link]
        return link

    for crossed in links:
        for link in crossed[1:]:
            parent[root(link)] = root(crossed[0])
    found: dict[int, list[int]] = {}
    for at, crossed in enumerate(links):
        if crossed:
            found.setdefault(root(crossed[0]), []).append(at)
    return list(found.values())


def renumbered(flows: Sequence[Flow], capacity: Sequence[float]) -> tuple[tuple[Flow, ...], tuple[float, ...]]:
    """The same flows over no links but theirs, numbered from zero: equal companies anywhere are one question."""
    used = sorted({link for flow in flows for link in flow.links})
    number = {link: k for k, link in enumerate(used)}
    return tuple(flow._replace(links=tuple(number[link] for link in flow.links)) for flow in flows), tuple(capacity[link] for link in used)


def slowdowns(gangs: Gangs, times: Times, slipped: Floats | None = None) -> Floats:
    """How many times longer an iteration takes each gang than alone, by how long it takes the companies they are in.

    `slipped`: the part of an iteration by which each has slipped from its offset.
    """
    traffic = Traffic.read(gangs._metric, gangs.rows)
    crossed = [links if known else () for links, known in zip(gangs.links, traffic.known.tolist())]
    capacity, slow = [link.bandwidth for link in gangs.cluster.links], np.ones(len(gangs))
    for company in companies(crossed):
        flows = [_flow(gangs, traffic, at, crossed[at], 0.0 if slipped is None else float(slipped[at])) for at in company]
        slow[company] = times(*renumbered(flows, capacity)) / traffic.iteration[company]
    return slow


def _flow(gangs: Gangs, traffic: Traffic, at: int, links: tuple[int, ...], slipped: float) -> Flow:
    iteration, network = float(traffic.iteration[at]), float(traffic.network[at])
    own = own_phase(int(gangs.rows[at])) * iteration
    shift = float(gangs.offset[at]) + slipped * iteration if gangs.group[at] >= 0 else own
    return Flow(iteration - network, network, float(traffic.bandwidth[at]), links, shift % iteration)
