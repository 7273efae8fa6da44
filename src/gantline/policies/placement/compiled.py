"""Our compiled placement rules: each is a choice of `fit.choose`, with the properties that others may count on."""

from __future__ import annotations

from gantline.policies.placement import fit
from gantline.policies.placement.rule import PlacementRule, Together
from gantline.policies.placement.skew import USUAL_LIMIT

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
