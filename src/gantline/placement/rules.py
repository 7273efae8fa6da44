"""Placement rules by name, with their options: ``consolidated``, ``consolidated:preferred``, ``first-free``, ``skew:0.3``, ``random``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.placement import fit
from gantline.placement.skew import USUAL_LIMIT

if TYPE_CHECKING:
    from gantline.placement.picking import DevicePicker

RULES = {
    "first-free": "nodes in order, as many devices as each has",
    "consolidated": "one node if it fits (exactly, else the fullest that does), whole idle nodes for larger gangs; waits otherwise",
    "consolidated:preferred": "consolidated if possible, else the fewest nodes",
    "consolidated:tight": "consolidated; the rest of a gang larger than a node goes to the tightest node instead of an idle one",
    "skew": "consolidated for models with a dominating tensor, smallest gaps for the others (Tiresias); skew:LIMIT sets the limit",
    "first-node": "the first node with enough; for larger gangs idle nodes and the first that takes the rest (YARN in Tiresias' simulator)",
    "random": "devices drawn at random among the free ones",
}

#: rules that pick single devices, see `picking`
PICKING = {
    "packed": "a node that fits exactly, else the fullest that does, else the nodes with most free; all gangs anew at every decision",
    "packed-sticky": "packed; gangs that run stay where they are",
    "pm-first": "the fastest devices for the class of the job, whatever their nodes (needs --device-speeds)",
    "pm-first-sticky": "pm-first; gangs that run stay where they are",
    "pal": "fast devices and few nodes, whichever costs less (PAL; needs --device-speeds)",
    "pal-sticky": "pal; gangs that run stay where they are",
    "bandwidth": "the devices of a node with the most bandwidth between them (Blox; needs links between devices in the cluster file)",
    "bandwidth-sticky": "bandwidth; gangs that run stay where they are",
}


@dataclass(frozen=True)
class PlacementRule:
    """A rule for the compiled `choose`."""

    name: str
    rule: int
    whole: bool = True
    skew_limit: float | None = None  # models whose skew is above it are kept together; None: the rule does not look at models
    picks: bool = False  # single devices, by a picker; the compiled walk then only counts
    picker: DevicePicker | None = None  # made for the cluster, the devices and the jobs of a run


def find_placement(name: str) -> PlacementRule:
    """The rule of that name."""
    base, _, option = name.partition(":")
    if name == "first-free":
        return PlacementRule(name, fit.FIRST_FREE)
    if name == "first-node":
        return PlacementRule(name, fit.FIRST_NODE)
    if name in PICKING:
        return PlacementRule(name, fit.FIRST_FREE, picks=True)
    if name == "random":
        return PlacementRule(name, fit.RANDOM)
    if base == "consolidated" and option in {"", "strict", "preferred", "tight"}:
        return PlacementRule(name, fit.PREFERRED if option == "preferred" else fit.CONSOLIDATED, whole=option != "tight")
    if base == "skew":
        try:
            limit = float(option) if option else USUAL_LIMIT
        except ValueError:
            limit = math.nan
        if not 0.0 <= limit < math.inf:
            raise UsageError(f"the skew limit '{option}' is not a number of zero or more", where="--placement", fix="write skew:0.5")
        return PlacementRule(name, fit.SKEW, skew_limit=limit)
    raise NotFoundError(f"no placement '{name}'", where="--placement", fix=near(name, [*RULES, *PICKING]))
