"""What happens to one gang: taking devices, starting, stopping, finishing. The only code that changes which gang holds what."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.arrays import Floats, Ints
from gantline.core.beside import take_beside
from gantline.core.gather import elapsed
from gantline.core.jit import kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine import log as g
from gantline.engine import settings as s
from gantline.engine.log import LogColumns
from gantline.engine.settings import EngineRules
from gantline.policies.placement.few_nodes import NodeCounts, supply_for
from gantline.policies.placement.fit import Picking, choose, mix

_FINISHED = int(Reason.FINISHED)


@kernel
def take(t: Matrices, row: int, option: int, nodes: Ints, counts: Ints, used: int) -> None:
    """Give the row the chosen devices, lowest first on each node, linked in that order."""
    I, D = t.I, t.D
    I[c.OPTION, row] = option
    I[c.SPREAD, row] = used
    held = 0
    last = -1
    I[c.HEAD, row] = -1
    if t.OI[c.O_GPUS, option] == 0:
        node = nodes[0]
        take_beside(t.OF, t.NF, option, node, 1)
        I[c.NODE, row] = node
        I[c.HELD, row] = 0
        return
    for k in range(used):
        node = nodes[k]
        left = counts[k]
        take_beside(t.OF, t.NF, option, node, left)
        t.NI[c.N_FREE, node] -= left
        device = t.NI[c.N_FIRST, node]
        while left > 0:
            if D[c.D_HOLDER, device] == c.FREE:
                D[c.D_HOLDER, device] = row
                D[c.D_NEXT, device] = -1
                if last < 0:
                    I[c.HEAD, row] = device
                else:
                    D[c.D_NEXT, last] = device
                last = device
                held += 1
                left -= 1
            device += 1
    I[c.HELD, row] = held


@kernel
def give_back(t: Matrices, row: int) -> None:
    """Free what the row holds; its progress columns stay as they are. Cordoned devices do not become free."""
    I, OF, NF, NI, D = t.I, t.OF, t.NF, t.NI, t.D
    option = I[c.OPTION, row]
    if option >= 0 and I[c.NODE, row] >= 0:
        take_beside(OF, NF, option, I[c.NODE, row], -1)
        I[c.NODE, row] = -1
    device = I[c.HEAD, row]
    while device >= 0:
        following = D[c.D_NEXT, device]
        node = D[c.D_NODE, device]
        if NI[c.N_UP, node] == 1 and D[c.D_CLOSED, device] == 0:
            D[c.D_HOLDER, device] = c.FREE
            NI[c.N_FREE, node] += 1
        else:
            D[c.D_HOLDER, device] = c.DOWN
        if option >= 0:
            take_beside(OF, NF, option, node, -1)
        D[c.D_NEXT, device] = -1
        device = following
    I[c.HEAD, row] = -1


@kernel
def settle(F: Floats, I: Ints, row: int, now: float) -> None:
    """Bring the moving columns of a row up to `now`."""
    dt = elapsed(F, I, row, now)
    if dt > 0.0:
        F[c.DONE, row] += F[c.RATE, row] * dt
        F[c.SERVICE, row] += dt
        F[c.GPUTIME, row] += I[c.HELD, row] * dt
        F[c.SINCE, row] = now


@kernel
def set_due(F: Floats, row: int) -> None:
    """When the row, left alone, is done or its estimate proves too low."""
    if F[c.RATE, row] > 0.0:
        goal = F[c.WORK, row]
        if F[c.ESTIMATE, row] < goal and F[c.ESTIMATE, row] > F[c.DONE, row]:
            goal = F[c.ESTIMATE, row]
        F[c.DUE, row] = F[c.SINCE, row] + (goal - F[c.DONE, row]) / F[c.RATE, row]
    else:
        F[c.DUE, row] = np.inf


@kernel
def set_speeds(F: Floats, I: Ints, rows: Ints, rate: Floats, until: Floats, now: float) -> None:
    """Set new speeds from now on, and when rows are due with them; rows with an unchanged speed are left alone."""
    for k in range(rows.shape[0]):
        row = rows[k]
        F[c.SPEED_UNTIL, row] = until[k]
        if rate[k] != F[c.RATE, row]:
            settle(F, I, row, now)
            F[c.RATE, row] = rate[k]
            set_due(F, row)


@kernel
def open_interval(I: Ints, D: Ints, row: int, now: float, log: LogColumns) -> None:
    """Log that the row holds its present devices from now on."""
    at, offset = log.written[g.INTERVALS], log.written[g.DEVICES]
    I[c.INTERVAL, row] = at
    log.entry[g.L_ROW, at] = row
    log.entry[g.L_OPTION, at] = I[c.OPTION, row]
    log.entry[g.L_REASON, at] = 0
    log.entry[g.L_OFFSET, at] = offset
    log.entry[g.L_NODE, at] = I[c.NODE, row]
    log.time[g.L_START, at] = now
    log.time[g.L_END, at] = np.nan
    device = I[c.HEAD, row]
    count = 0
    while device >= 0:
        log.device[offset + count] = device
        count += 1
        device = D[c.D_NEXT, device]
    log.entry[g.L_COUNT, at] = count
    log.written[g.INTERVALS], log.written[g.DEVICES] = at + 1, offset + count


@kernel
def close_interval(I: Ints, row: int, now: float, reason: int, log: LogColumns) -> None:
    """Log that the row holds them until now."""
    at = I[c.INTERVAL, row]
    if at >= 0:
        log.time[g.L_END, at] = now
        log.entry[g.L_REASON, at] = reason
        I[c.INTERVAL, row] = -1


@kernel
def rate_of(t: Matrices, row: int) -> float:
    """Work per second of a chained gang with the option in use, by whether it sits on as few nodes as it can."""
    option = t.I[c.OPTION, row]
    gpus = t.OI[c.O_GPUS, option]
    together = True
    if t.I[c.SPREAD, row] > 1:  # spans more nodes than it must?
        size = t.NI[c.N_GPUS, t.D[c.D_NODE, t.I[c.HEAD, row]]]
        together = t.I[c.SPREAD, row] <= (gpus + size - 1) // size
    rate: float = t.OF[c.O_RATE, option] if together else t.OF[c.O_RATE_SPREAD, option]
    return rate


@kernel
def price(cost: float, devices: int, amount: Floats) -> float:
    """What a change costs a gang of so many devices."""
    return cost + amount[s.S_DOUBLING] * np.log2(float(devices)) if cost > 0.0 and devices > 1 else cost


@kernel
def start(t: Matrices, row: int, now: float, rules: EngineRules, log: LogColumns) -> None:
    """The row has taken its devices: it begins to run."""
    F, I, amount = t.F, t.I, rules.amount
    rate = rate_of(t, row)
    waited = now - F[c.SINCE, row]
    if waited > 0.0:
        F[c.WAITED, row] += waited
    first = np.isnan(F[c.FIRST_START, row])
    cost = price(amount[s.S_START] if first else amount[s.S_RESUME], I[c.HELD, row], amount)
    if first:
        F[c.FIRST_START, row] = now
        F[c.MARK, row] = now + amount[s.S_CREDIT]
    else:
        I[c.RESTARTS, row] += 1
    F[c.LAST_START, row] = now
    F[c.UNTIL, row] = np.inf
    I[c.EPOCH, row] += 1
    I[c.REASON, row] = 0
    F[c.RATE, row] = rate
    I[c.PHASE, row] = RUNNING
    F[c.SINCE, row] = now + cost
    set_due(F, row)
    open_interval(I, t.D, row, now, log)


@kernel
def halt(F: Floats, I: Ints, row: int, now: float, reason: int, log: LogColumns) -> None:
    """The row stops on purpose: what it has done is saved. Its devices have been given back already."""
    I[c.PREEMPTIONS, row] += 1
    I[c.REASON, row] = reason
    settle(F, I, row, now)
    close_interval(I, row, now, reason, log)
    rest(F, I, row, now)


@kernel
def rest(F: Floats, I: Ints, row: int, now: float) -> None:
    """The row waits from now on, with all its work saved."""
    F[c.SAFE, row] = F[c.DONE, row]
    F[c.RATE, row] = 0.0
    F[c.SINCE, row] = now
    F[c.UNTIL, row] = np.inf
    I[c.PHASE, row] = PENDING
    I[c.HELD, row] = 0
    I[c.OPTION, row] = -1
    I[c.SPREAD, row] = 0


@kernel
def complete(t: Matrices, row: int, at: float, log: LogColumns) -> None:
    """The row has finished at the instant `at`."""
    F, I = t.F, t.I
    settle(F, I, row, at)
    F[c.DONE, row] = F[c.WORK, row]
    F[c.SAFE, row] = F[c.WORK, row]
    F[c.FINISH, row] = at
    F[c.RATE, row] = 0.0
    give_back(t, row)
    close_interval(I, row, at, _FINISHED, log)
    I[c.PHASE, row] = COMPLETED
    I[c.HELD, row] = 0
    I[c.OPTION, row] = -1


# Where a gang would go by the placement rule: one question, compiled.


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
