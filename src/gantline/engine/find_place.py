"""Where a gang would go by the placement rule: one question, compiled."""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine import settings as s
from gantline.engine.settings import EngineRules
from gantline.policies.placement.fit import NodeCounts, Picking, choose, mix, supply_for


@kernel
def manner_of(t: Matrices, rules: EngineRules, row: int) -> Picking:
    """How devices for a row are chosen; random placement draws anew for every grant."""
    seed = mix(rules.switch[s.S_SEED] * 1000003 + t.I[c.EPOCH, row] * 8191 + row)
    return Picking(rules.switch[s.S_RULE], rules.switch[s.S_WHOLE] == 1, t.I[c.CONSOLIDATE, row] > 0, seed)


@kernel
def find_place(t: Matrices, rules: EngineRules, row: int, option: int, reclaim: bool, nodes: Ints, counts: Ints) -> int:
    """Nodes and how many devices of each, among the free ones; with `reclaim`, also among those that would be given up. 0: nowhere."""
    supply = supply_for(t.NF, t.NI, t.OF, t.OI, option, reclaim)
    return choose(supply, t.OI[c.O_GPUS, option], t.OI[c.O_NODES, option], manner_of(t, rules, row), NodeCounts(nodes, counts))
