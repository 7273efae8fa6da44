"""The placement rules by name: ours, and those of installed packages (group ``gantline.placements``).

``consolidated``, ``consolidated:preferred``, ``first-free``, ``skew:0.3``, ``random``, ...; rules of users also come
as values or files. A rule is a value with its name, its choice and the properties that others may count on. The
engine, its loops and the drivers ask for properties and never for names; the conformance suite holds every rule to
its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.policies.placement import fit
from gantline.policies.placement.device_rule import DeviceRule
from gantline.policies.placement.parts.scores import PART_RULES
from gantline.registry import Register


class Together(IntEnum):
    """Which gangs are better off on few nodes, so that growing in place is compared with moving."""

    NEVER = 0
    SENSITIVE = 1  # gangs with models that are slower when spread
    ALWAYS = 2


@dataclass(frozen=True)
class PlacementRule:
    """A placement rule: compiled (`code` says which choice of `fit.choose`) or in Python (`device_rule`)."""

    name: str
    what: str = ""  # in a line
    code: int = fit.FIRST_FREE  # of a rule in Python: how the walk counts
    whole: bool = True  # gangs larger than a node take whole idle nodes
    skew_limit: float | None = None  # models with a larger skew are kept together; None: the rule does not look at models
    device_rule: DeviceRule | None = None  # picks single devices; the compiled walk then only counts
    monotone: bool = True  # a place for a gang implies one for every smaller gang; under `one_node` gangs up to a node are treated apart
    together: Together = Together.NEVER
    one_node: bool = False  # gangs no larger than a node sit on one, or wait
    counts: bool = False  # a gang fits wherever enough devices are free
    on_records: bool = False  # loops over dense records know it
    sticky: bool = True  # gangs that run stay where they are
    parts: bool = False  # it places parts of GPUs, under policies that share devices
    only_parts: bool = False  # and no gangs under any other

    @property
    def picks(self) -> bool:
        """Whether it picks single devices."""
        return self.device_rule is not None

    @property
    def may_wait(self) -> bool:
        """Whether it may make a gang wait although enough devices are free for it, which only its choice shows."""
        return self.device_rule is not None and self.device_rule.waits

    @property
    def properties(self) -> dict[str, bool | str]:
        """What may be counted on, by name."""
        together = self.together if self.device_rule is None else self.device_rule.together * Together.ALWAYS
        plain = {name: getattr(self, name) for name in ("monotone", "one_node", "counts", "sticky")}
        return {**plain, "together": Together(together).name.lower(), "compiled": not self.picks}


def rule_in_python(rule: DeviceRule, name: str) -> PlacementRule:
    """A rule that picks single devices as a value."""
    what = " ".join((type(rule).__doc__ or "").split("\n\n")[0].split()).removesuffix(".")
    return PlacementRule(name, what[:1].lower() + what[1:], device_rule=rule, counts=not rule.waits, sticky=rule.sticky)


# How unevenly a model's parameters sit in its tensors: the placement sensitivity of Tiresias (NSDI 2019, section
# 3.3).
#
# The measure is the largest tensor over the model's size; four of the ten models of the paper exceed one half and
# suffer when spread.

USUAL_LIMIT = 0.5
MODEL_SKEW = {
    "vgg11": 0.773,
    "vgg16": 0.743,
    "vgg19": 0.715,
    "alexnet": 0.610,
    "googlenet": 0.146,
    "resnet50": 0.092,
    "inception3": 0.086,
    "resnet101": 0.053,
    "resnet152": 0.039,
    "inception4": 0.036,
}


def is_sensitive(model: str, limit: float) -> bool:
    """Whether a model should be consolidated; unmeasured models are taken as insensitive."""
    return MODEL_SKEW.get(model.lower(), 0.0) > limit


# Our compiled placement rules: each is a choice of `fit.choose`, with the properties that others may count on.

FIRST_FREE = PlacementRule("first-free", "nodes in order, as many devices as each has", fit.FIRST_FREE, counts=True, on_records=True)
CONSOLIDATED = PlacementRule(
    "consolidated",
    "one node if it fits (exactly, else the fullest that does), whole idle nodes for larger gangs; waits otherwise",
    fit.CONSOLIDATED,
    together=Together.ALWAYS,
    one_node=True,
    on_records=True,
)
PREFERRED = PlacementRule(
    "consolidated:preferred", "consolidated if possible, else the fewest nodes", fit.PREFERRED, together=Together.ALWAYS, counts=True
)
TIGHT = PlacementRule(
    "consolidated:tight",
    "consolidated; the rest of a gang larger than a node goes to the tightest node instead of an idle one",
    fit.CONSOLIDATED,
    whole=False,
    together=Together.ALWAYS,
    one_node=True,
    on_records=True,
)
SKEW = PlacementRule(
    "skew",
    "consolidated for models with a dominating tensor, smallest gaps for the others (Tiresias); skew:LIMIT sets the limit",
    fit.SKEW,
    skew_limit=USUAL_LIMIT,
    monotone=False,
    together=Together.SENSITIVE,
)
FIRST_NODE = PlacementRule(
    "first-node",
    "the first node with enough; for larger gangs idle nodes and the first that takes the rest (YARN in Tiresias' simulator)",
    fit.FIRST_NODE,
)
RANDOM = PlacementRule("random", "devices drawn at random among the free ones", fit.RANDOM, counts=True, parts=True)


# The placement rules by name: ours, and what installed packages bring (group ``gantline.placements``). No other
# module names a rule.
#
# ``consolidated``, ``consolidated:preferred``, ``first-free``, ``skew:0.3``, ``random``, ...; rules of users also
# come as values or files.

__all__ = ["PlacementRule", "find_placement", "is_rule", "made_rule", "own_rules", "placement_rules"]

_COMPILED, _PICKING = "gantline.policies.placement.rules", "gantline.policies.placement.picking"
_PLACEMENTS = Register(
    "placements",
    {
        "first-free": f"{_COMPILED}:FIRST_FREE",
        "consolidated": f"{_COMPILED}:CONSOLIDATED",
        "consolidated:preferred": f"{_COMPILED}:PREFERRED",
        "consolidated:tight": f"{_COMPILED}:TIGHT",
        "skew": f"{_COMPILED}:SKEW",
        "first-node": f"{_COMPILED}:FIRST_NODE",
        "random": f"{_COMPILED}:RANDOM",
        "packed": f"{_PICKING}:PACKED",
        "packed-sticky": f"{_PICKING}:PACKED_STICKY",
        "pm-first": f"{_PICKING}:PM_FIRST",
        "pm-first-sticky": f"{_PICKING}:PM_FIRST_STICKY",
        "pal": f"{_PICKING}:PAL",
        "pal-sticky": f"{_PICKING}:PAL_STICKY",
        "bandwidth": f"{_PICKING}:BANDWIDTH",
        "bandwidth-sticky": f"{_PICKING}:BANDWIDTH_STICKY",
    },
    where="--placement",
    aliases={"consolidated:strict": "consolidated"},
)


def own_rules() -> list[str]:
    """The names of our rules."""
    return list(_PLACEMENTS.own())


def placement_rules() -> dict[str, PlacementRule]:
    """All rules, ours and those of installed packages."""
    return {name: find_placement(name) for name in _PLACEMENTS.names()}


def find_placement(name: str) -> PlacementRule:
    """The rule of that name."""
    found = _PLACEMENTS.find(name)
    if found is not None:
        return made_rule(_PLACEMENTS.load(name), name, f"package {found.brought_by}")
    base, _, option = name.partition(":")
    if base == "skew":
        return replace(find_placement("skew"), name=name, skew_limit=_skew_limit(option))
    if name in PART_RULES:
        return PlacementRule(name, "parts of GPUs by a rule of FGD's comparison", counts=True, parts=True, only_parts=True)
    raise NotFoundError(f"no placement '{name}'", where="--placement", fix=f"{near(name, _PLACEMENTS.names())}; or FILE.py:RULE")


def is_rule(value: Any) -> bool:
    """Whether this is a placement rule, or a class of rules in Python."""
    return isinstance(value, (PlacementRule, DeviceRule)) or (isinstance(value, type) and issubclass(value, DeviceRule))


def made_rule(found: Any, name: str, where: str) -> PlacementRule:
    """The rule under that name: from itself, from an object of a class of rules in Python, or from the class."""
    if not is_rule(found):
        kind = "class that is not a DeviceRule" if isinstance(found, type) else type(found).__name__
        raise UsageError(f"'{name}' is a {kind}", where=where, fix="derive it from gantline.DeviceRule")
    if isinstance(found, PlacementRule):
        return found if found.name == name else replace(found, name=name)
    if isinstance(found, type):
        try:
            found = found()
        except Exception as error:
            what = f"'{name}' cannot be made: {type(error).__name__}: {error}"
            raise UsageError(what, where=where, fix="give every parameter a default, or name an object of the class") from error
    return rule_in_python(found, name)


def _skew_limit(option: str) -> float:
    try:
        limit = float(option)
    except ValueError:
        limit = math.nan
    if not 0.0 <= limit < math.inf:
        raise UsageError(f"the skew limit '{option}' is not a number of zero or more", where="--placement", fix="write skew:0.5")
    return limit
