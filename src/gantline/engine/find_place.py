"""Where a gang would go by the placement rule: one question, compiled."""

from __future__ import annotations

from gantline.core.arrays import Ints
from gantline.core.columns import Job, Option
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine.settings import EngineRules, Switch
from gantline.policies.placement.few_nodes import NodeCounts, supply_for
from gantline.policies.placement.fit import Picking, choose, mix


@kernel
def manner_of(t: Matrices, rules: EngineRules, row: int) -> Picking:
    """How devices for a row are chosen; random placement draws anew for every grant."""
    seed = mix(rules.switch[Switch.SEED] * 1000003 + t.I[Job.EPOCH, row] * 8191 + row)
    return Picking(rules.switch[Switch.RULE], rules.switch[Switch.WHOLE] == 1, t.I[Job.CONSOLIDATE, row] > 0, seed)


@kernel
def find_place(t: Matrices, rules: EngineRules, row: int, option: int, reclaim: bool, nodes: Ints, counts: Ints) -> int:
    """Nodes and how many devices of each, among the free ones; with `reclaim`, also among those that would be given up. 0: nowhere."""
    supply = supply_for(t.NF, t.NI, t.OF, t.OI, option, reclaim)
    return choose(supply, t.OI[Option.GPUS, option], t.OI[Option.NODES, option], manner_of(t, rules, row), NodeCounts(nodes, counts))
