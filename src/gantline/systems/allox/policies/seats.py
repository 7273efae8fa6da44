"""Whether what was decided can be seated on nodes: totals may suffice where no single node does."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.beside import take_beside
from gantline.core.jit import kernel_from_zero as kernel
from gantline.placement.few_nodes import NodeCounts, supply_for
from gantline.placement.fit import choose_first_free


def first_unseated(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints) -> int:
    """The first of the options, in order, that finds no node with room once the earlier ones are seated; -1: all do."""
    return take_seats(OF, OI, NF.copy(), NI.copy(), options)


def take_seats(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints) -> int:
    """Seat the options in order and write down what they take; the first that finds no room, -1: all do."""
    return seat(OF, OI, NF, NI, options, np.empty(NI.shape[1] + 1, np.int64), np.empty(NI.shape[1] + 1, np.int64))


@kernel
def seat(OF: Floats, OI: Ints, NF: Floats, NI: Ints, options: Ints, nodes: Ints, counts: Ints) -> int:
    """The same with room for the nodes of one option, and one more."""
    seats = NodeCounts(nodes, counts)
    for i in range(options.size):
        o = options[i]
        supply = supply_for(NF, NI, OF, OI, o, False)
        used = choose_first_free(supply, OI[c.O_GPUS, o], OI[c.O_NODES, o], seats)
        if used == 0:
            return i
        for k in range(used):
            NI[c.N_FREE, nodes[k]] -= counts[k]
            take_beside(OF, NF, o, nodes[k], max(counts[k], 1))
    return -1
