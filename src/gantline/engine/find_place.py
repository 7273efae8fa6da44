"""Where a gang would go by the placement rule: one question, compiled."""

from __future__ import annotations

from gantline.core import columns as c
from gantline.core.arrays import Ints
from gantline.core.jit import kernel
from gantline.core.tables import Matrices
from gantline.engine import settings as s
from gantline.engine.settings import EngineRules
from gantline.placement.fit import choose, mix


@kernel
def seed_of(t: Matrices, rules: EngineRules, row: int) -> int:
    """Random placement draws anew for every grant of a row."""
    return mix(rules.switch[s.S_SEED] * 1000003 + t.I[c.EPOCH, row] * 8191 + row)


@kernel
def find_place(t: Matrices, rules: EngineRules, row: int, option: int, reclaim: bool, nodes: Ints, counts: Ints) -> int:
    """Nodes and how many devices of each, among the free ones; with `reclaim`, also among those that would be given up. 0: nowhere."""
    need = t.OI[c.O_GPUS, option]
    whole, sensitive = rules.switch[s.S_WHOLE] == 1, t.I[c.CONSOLIDATE, row] == 1
    kind, spread, cpus, memory = t.OI[c.O_TYPE, option], t.OI[c.O_NODES, option], t.OF[c.O_CPUS, option], t.OF[c.O_MEMORY, option]
    rule, seed = rules.switch[s.S_RULE], seed_of(t, rules, row)
    return choose(t.NF, t.NI, kind, need, spread, cpus, memory, rule, whole, sensitive, seed, reclaim, nodes, counts)
