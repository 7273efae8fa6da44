"""Checks a placement rule, ours or a user's: on random half-full clusters, and in a run on both clocks."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field, replace

import numpy as np

from gantline.core.cluster import Cluster, Link, Node
from gantline.core.columns import DOWN, FREE, Device
from gantline.core.columns import Node as NodeColumn
from gantline.core.errors import GantlineError
from gantline.core.facts import DeviceSpeeds, Facts
from gantline.core.tables import Tables
from gantline.lab.conformance.report import Breach, ConformanceReport
from gantline.lab.conformance.scenarios import some_jobs
from gantline.lab.conformance.watched import fence
from gantline.policies.placement import fit
from gantline.policies.placement.device_rule import DeviceRule, FreeDevices, GangRequest, PlacementError, chosen_devices
from gantline.policies.placement.fit import NodeCounts, Supply
from gantline.policies.placement.rules import PlacementRule, Together
from gantline.simulator.simulate import simulate
from gantline.traces.files.policies import placement_of
from gantline.traces.trace import Trace

WORLDS = 200
_RULES = {
    "answers": "chooses devices for a gang, or says that it must wait; it does not raise, and answers in time",
    "whole": "a gang gets as many devices as it needs, or none",
    "free": "every device is free, of the gang's type, not cordoned, and given once",
    "deterministic": "equal questions get equal answers, also from a copy of the rule",
    "input": "leaves what it is shown as it is",
    "purity": "reads no clock, draws no unseeded randomness, does no I/O",
    "counts": "a gang fits wherever enough devices are free",
    "monotone": "where a gang fits, every smaller one does (under one_node: of those up to the largest node, and of larger ones)",
    "one_node": "a gang that is no larger than a node sits on one, or waits",
    "together": "a gang that one node has room for is not spread",
    "two clocks": "a run through orders and reports gives the same devices as one on virtual time, and every job ends",
}


@dataclass(frozen=True)
class ClusterInUse:
    """A cluster in use: a line of the node table, and what is free."""

    cluster: Cluster
    tables: Tables
    facts: Facts

    @property
    def free(self) -> list[int]:
        return [int(device) for device in np.flatnonzero(self.tables.D[Device.HOLDER] == FREE)]

    def __str__(self) -> str:
        free = self.tables.NI[NodeColumn.FREE].tolist()
        return "free of each node: " + ", ".join(f"{free[k]} of {node.gpus}" for k, node in enumerate(self.cluster.nodes))


@dataclass
class _Case:
    rule: PlacementRule
    broken: dict[str, str] = field(default_factory=dict)
    answered: int = 0  # worlds in which it gave an answer that could be checked
    ran: bool = False

    def breach(self, rule: str, message: object) -> None:
        self.broken.setdefault(rule, str(message))


def check_placement(rule: PlacementRule | DeviceRule | str, *, worlds: int = WORLDS) -> ConformanceReport:
    """Put a placement rule (a value, a name, a file) through all rules; a broken rule is reported with the example."""
    case = _Case(placement_of(rule))
    for number in range(worlds):
        world = a_world(number)
        _ask(case, world, random.Random(f"gang/{number}"))
    if not case.broken:
        _run(case)
    unseen = _unseen(case)
    found = (
        Breach(name, name not in case.broken, case.broken.get(name, unseen.get(name, what)), name in case.broken or name not in unseen)
        for name, what in _RULES.items()
    )
    return ConformanceReport(case.rule.name, tuple(found))


def _unseen(case: _Case) -> dict[str, str]:
    """The rules that were not checked, and why not."""
    declared = case.rule.properties
    found: dict[str, str] = {}
    if not case.answered:
        found |= dict.fromkeys(_RULES, "it gave no answer that could be checked")
    if not case.ran:
        found["two clocks"] = "no run while other rules are broken"
    found |= {name: "the rule does not declare it" for name in ("counts", "monotone", "one_node") if not declared[name]}
    if case.rule.picks:
        found |= dict.fromkeys(("counts", "monotone"), "the engine counts for a rule in Python")
    return found | ({"together": "the rule does not declare it"} if declared["together"] == Together.NEVER.name.lower() else {})


def a_world(number: int) -> ClusterInUse:
    """The cluster of that number: up to five nodes in up to two racks, some devices held, cordoned or on nodes that drain."""
    draw = random.Random(f"world/{number}")
    size = draw.choice((2, 4, 8))
    sizes = [size if number % 2 else draw.randint(1, size) for _ in range(draw.randint(1, 5))]
    sizes[0] = max(sizes[0], 2)  # it has a link
    nodes = tuple(Node(f"n{k}", "gpu", gpus, rack=f"r{draw.randint(0, 1)}" if number % 3 == 0 else "") for k, gpus in enumerate(sizes))
    links = (Link("n0:0", "n0:1", 50.0),)
    cluster = Cluster(nodes, links)
    tables = Tables.empty(cluster, 1)
    busy = draw.random()
    drains = draw.randrange(2 * len(nodes)) if len(nodes) > 1 else -1  # half of the time none
    NI, D = tables.NI, tables.D
    for device in range(int(cluster.gpus)):
        node, held, cordoned = int(D[Device.NODE, device]), draw.random() < busy, draw.random() < 0.05
        if held or cordoned or node == drains:
            D[Device.HOLDER, device], D[Device.CLOSED, device] = 0 if held else DOWN, int(cordoned)
            NI[NodeColumn.FREE, node] -= 1
            NI[NodeColumn.CLOSED, node] += int(cordoned)
    if 0 <= drains < len(nodes):
        NI[NodeColumn.UP, drains] = 0
    speeds = DeviceSpeeds({"": np.array([draw.choice((0.9, 1.0, 1.2, 2.0)) for _ in range(int(cluster.gpus))])})
    return ClusterInUse(cluster, tables, Facts(device_speeds=speeds, locality=1.5))


def choose(rule: PlacementRule, world: ClusterInUse, gpus: int, sensitive: bool = False) -> tuple[int, ...] | None:
    """Devices for a gang in this world, by the compiled choice or in Python; None: it waits."""
    t, free = world.tables, world.free
    if rule.device_rule is not None:
        if len(free) < gpus:
            return None
        gang = GangRequest("gang", gpus, "vgg16" if sensitive else "resnet50", seed=gpus)
        return chosen_devices(rule.name, rule.device_rule, gang, FreeDevices(tuple(free), world.cluster.device_node.tolist()))
    chosen = NodeCounts(np.zeros(len(world.cluster.nodes) + 1, dtype=np.int64), np.zeros(len(world.cluster.nodes) + 1, dtype=np.int64))
    manner = fit.Picking(rule.code, rule.whole, sensitive, 12345 + gpus)
    used = fit.choose(Supply(t.NF, t.NI, 0, 0.0, 0.0, 0.0, False), gpus, 0, manner, chosen)
    if used == 0:
        return None
    found: list[int] = []
    for node, count in zip(chosen.nodes[:used].tolist(), chosen.counts[:used].tolist()):
        found += [device for device in free if world.cluster.device_node[device] == node][:count]
    return tuple(found) if int(chosen.counts[:used].sum()) == gpus else tuple(found[:-1])


def _ask(case: _Case, world: ClusterInUse, draw: random.Random) -> None:
    """One gang in one world, and every smaller one."""
    rule, gpus = case.rule, draw.randint(1, max(1, min(world.cluster.gpus, 12)))
    sensitive = draw.random() < 0.5
    try:
        if rule.device_rule is not None:
            rule = replace(rule, device_rule=rule.device_rule.on(world.cluster, world.facts))
        before = (world.tables.NI.copy(), world.tables.D.copy())
        with fence() as crossed:
            found = choose(rule, world, gpus, sensitive)
        again = choose(copy.deepcopy(rule), world, gpus, sensitive)
        smaller = range(1, gpus) if rule.monotone and not rule.picks else ()
        misfits = [size for size in smaller if any(choose(rule, world, size, model) is None for model in (False, True))]
    except PlacementError as error:
        text = str(error)
        kind = "whole" if "for a gang of" in text else "free" if "twice" in text or "not free" in text else "answers"
        case.breach(kind, f"{text}; {world}")
        return
    except GantlineError as error:
        case.breach("answers", error)
        return
    case.answered += int(found is not None)
    where = f"a gang of {gpus} got {found}; {world}"
    if crossed and rule.device_rule is not None:
        case.breach("purity", crossed[0])
    if found != again:
        case.breach("deterministic", f"a gang of {gpus} got {found}, then {again}; {world}")
    if not all(np.array_equal(a, b) for a, b in zip(before, (world.tables.NI, world.tables.D))):
        case.breach("input", where)
    if found is not None and len(found) != gpus:
        case.breach("whole", where)
    if found is not None and (len(set(found)) < len(found) or not set(found) <= set(world.free)):
        case.breach("free", where)
    _hold_to_properties(case, world, gpus, sensitive, found, misfits)


def _hold_to_properties(
    case: _Case, world: ClusterInUse, gpus: int, sensitive: bool, found: tuple[int, ...] | None, misfits: list[int]
) -> None:
    """Check the properties that the rule declares."""
    declared, free = case.rule.properties, world.tables.NI[NodeColumn.FREE]
    node = world.cluster.device_node
    largest = max((one.gpus for k, one in enumerate(world.cluster.nodes) if world.tables.NI[NodeColumn.UP, k] == 1), default=0)
    spread = len({int(node[device]) for device in found or ()})
    where = f"a gang of {gpus} got {found}; {world}"
    if declared["counts"] and (found is not None) != (gpus <= len(world.free)):
        case.breach("counts", where)
    if declared["monotone"] and found is not None:
        for size in (size for size in misfits if not (declared["one_node"] and size <= largest < gpus)):
            case.breach("monotone", f"{where}, but a gang of {size} does not fit")
    if declared["one_node"] and gpus <= largest and spread > 1:
        case.breach("one_node", where)
    likes = declared["together"] == Together.ALWAYS.name.lower() or (declared["together"] == Together.SENSITIVE.name.lower() and sensitive)
    if likes and spread > 1 and (free >= gpus).any():
        case.breach("together", where)


def _run(case: _Case) -> None:
    """A run on either clock."""
    case.ran = True
    cluster = Cluster(tuple(Node(f"n{k}", "gpu", 4) for k in range(3)), (Link("n0:0", "n0:1", 50.0),))
    speeds = DeviceSpeeds({"": np.array([1.0, 1.2, 0.9, 1.0] * 3)})
    jobs = Trace.from_records(some_jobs("placement", largest=8))
    try:
        runs = [
            simulate(jobs, cluster, "srtf", placement=case.rule, device_speeds=speeds, executor=one) for one in ("instant", "acknowledged")
        ]
    except GantlineError as error:
        case.breach("two clocks", error)
        return
    if incidents := runs[0].incidents:
        case.breach("two clocks", incidents[0])
    if runs[0].summary["log_hash"] != runs[1].summary["log_hash"]:
        case.breach("two clocks", "the runs differ")
    left = [name for name, state in runs[0].jobs.select("job", "state").rows() if state != "completed"]
    if left:
        case.breach("two clocks", f"job '{left[0]}' does not end")
