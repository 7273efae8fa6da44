"""The placement rules that there are, by name: defined and registered here, and known by name nowhere else.

``consolidated``, ``consolidated:preferred``, ``first-free``, ``skew:0.3``, ``random``, ...; rules of other people come as values or files.
"""

from __future__ import annotations

import math
from dataclasses import replace

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.placement import fit
from gantline.placement.device_rule import DeviceRule
from gantline.placement.rule import PlacementRule, Together
from gantline.placement.skew import USUAL_LIMIT

__all__ = ["PlacementRule", "find_placement", "known_rules", "rule_in_python"]

_COMPILED = (
    PlacementRule(
        "first-free", "nodes in order, as many devices as each has", fit.FIRST_FREE, counts=True, on_records=True
    ),
    PlacementRule(
        "consolidated",
        "one node if it fits (exactly, else the fullest that does), whole idle nodes for larger gangs; waits otherwise",
        fit.CONSOLIDATED, together=Together.ALWAYS, one_node=True, on_records=True,
    ),
    PlacementRule(
        "consolidated:preferred", "consolidated if possible, else the fewest nodes", fit.PREFERRED, together=Together.ALWAYS, counts=True
    ),
    PlacementRule(
        "consolidated:tight",
        "consolidated; the rest of a gang larger than a node goes to the tightest node instead of an idle one",
        fit.CONSOLIDATED, whole=False, together=Together.ALWAYS, one_node=True, on_records=True,
    ),
    PlacementRule(
        "skew",
        "consolidated for models with a dominating tensor, smallest gaps for the others (Tiresias); skew:LIMIT sets the limit",
        fit.SKEW, skew_limit=USUAL_LIMIT, monotone=False, together=Together.SENSITIVE,
    ),
    PlacementRule(
        "first-node",
        "the first node with enough; for larger gangs idle nodes and the first that takes the rest (YARN in Tiresias' simulator)",
        fit.FIRST_NODE,
    ),
    PlacementRule("random", "devices drawn at random among the free ones", fit.RANDOM, counts=True),
)  # fmt: skip
_OURS = {rule.name: rule for rule in _COMPILED}
_SAME = {"consolidated:strict": "consolidated"}


def _picking() -> dict[str, PlacementRule]:
    """Those that pick single devices; few runs look at them."""
    from gantline.placement.picking import Bandwidth, FastestFirst, Packed, Pal

    found = {}
    for name, rule in (("packed", Packed()), ("pm-first", FastestFirst()), ("pal", Pal()), ("bandwidth", Bandwidth())):
        found[name] = rule_in_python(rule, name)
        found[f"{name}-sticky"] = replace(
            found[name], name=f"{name}-sticky", what=f"{name}; gangs that run stay where they are", sticky=True
        )
    return found


def known_rules() -> dict[str, PlacementRule]:
    """All rules of ours, by name."""
    return {**_OURS, **_picking()}


def rule_in_python(rule: DeviceRule, name: str) -> PlacementRule:
    """A rule that picks single devices as a value."""
    what = " ".join((type(rule).__doc__ or "").split("\n\n")[0].split()).removesuffix(".")
    return PlacementRule(name, what[:1].lower() + what[1:], device_rule=rule, counts=True, sticky=rule.sticky)


def find_placement(name: str) -> PlacementRule:
    """The rule of that name."""
    if name in _OURS:
        return _OURS[name]
    if name in _SAME:
        return replace(_OURS[_SAME[name]], name=name)
    base, _, option = name.partition(":")
    if base == "skew":
        try:
            limit = float(option)
        except ValueError:
            limit = math.nan
        if not 0.0 <= limit < math.inf:
            raise UsageError(f"the skew limit '{option}' is not a number of zero or more", where="--placement", fix="write skew:0.5")
        return replace(_OURS["skew"], name=name, skew_limit=limit)
    known = known_rules()
    if name not in known:
        raise NotFoundError(f"no placement '{name}'", where="--placement", fix=f"{near(name, known)}; or FILE.py:RULE")
    return known[name]
