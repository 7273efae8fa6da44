"""What happens to one gang: taking devices, starting, stopping, finishing. The only code that changes which gang holds what."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DOWN, FREE, Device, Job, Node, Option, elapsed
from gantline.core.host_resources import take_beside
from gantline.core.jit import kernel
from gantline.core.phases import COMPLETED, PENDING, RUNNING
from gantline.core.reasons import Reason
from gantline.core.tables import Matrices
from gantline.engine.log import Interval, LogColumns, LogSize
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.policies.placement.fit import NodeCounts, Picking, choose, mix, supply_for

_FINISHED = int(Reason.FINISHED)


@kernel
def take(t: Matrices, row: int, option: int, nodes: Ints, counts: Ints, used: int) -> None:
    """Give the row the chosen devices, lowest first on each node, linked in that order."""
    I, D = t.I, t.D
    I[Job.OPTION, row] = option
    I[Job.SPREAD, row] = used
    held = 0
    last = -1
    I[Job.HEAD, row] = -1
    if t.OI[Option.GPUS, option] == 0:
        node = nodes[0]
        take_beside(t.OF, t.NF, option, node, 1)
        I[Job.NODE, row] = node
        I[Job.HELD, row] = 0
        return
    for k in range(used):
        node = nodes[k]
        left = counts[k]
        take_beside(t.OF, t.NF, option, node, left)
        t.NI[Node.FREE, node] -= left
        device = t.NI[Node.FIRST, node]
        while left > 0:
            if D[Device.HOLDER, device] == FREE:
                D[Device.HOLDER, device] = row
                D[Device.NEXT, device] = -1
                if last < 0:
                    I[Job.HEAD, row] = device
                else:
                    D[Device.NEXT, last] = device
                last = device
                held += 1
                left -= 1
            device += 1
    I[Job.HELD, row] = held


@kernel
def give_back(t: Matrices, row: int) -> None:
    """Free what the row holds; its progress columns stay as they are. Cordoned devices do not become free."""
    I, OF, NF, NI, D = t.I, t.OF, t.NF, t.NI, t.D
    option = I[Job.OPTION, row]
    if option >= 0 and I[Job.NODE, row] >= 0:
        take_beside(OF, NF, option, I[Job.NODE, row], -1)
        I[Job.NODE, row] = -1
    device = I[Job.HEAD, row]
    while device >= 0:
        following = D[Device.NEXT, device]
        node = D[Device.NODE, device]
        if NI[Node.UP, node] == 1 and D[Device.CLOSED, device] == 0:
            D[Device.HOLDER, device] = FREE
            NI[Node.FREE, node] += 1
        else:
            D[Device.HOLDER, device] = DOWN
        if option >= 0:
            take_beside(OF, NF, option, node, -1)
        D[Device.NEXT, device] = -1
        device = following
    I[Job.HEAD, row] = -1


@kernel
def settle(F: Floats, I: Ints, row: int, now: float) -> None:
    """Bring the moving columns of a row up to `now`."""
    dt = elapsed(F, I, row, now)
    if dt > 0.0:
        F[Job.DONE, row] += F[Job.RATE, row] * dt
        F[Job.SERVICE, row] += dt
        F[Job.GPUTIME, row] += I[Job.HELD, row] * dt
        F[Job.SINCE, row] = now


@kernel
def set_due(F: Floats, row: int) -> None:
    """When the row, left alone, is done or its estimate proves too low."""
    if F[Job.RATE, row] > 0.0:
        goal = F[Job.WORK, row]
        if F[Job.ESTIMATE, row] < goal and F[Job.ESTIMATE, row] > F[Job.DONE, row]:
            goal = F[Job.ESTIMATE, row]
        F[Job.DUE, row] = F[Job.SINCE, row] + (goal - F[Job.DONE, row]) / F[Job.RATE, row]
    else:
        F[Job.DUE, row] = np.inf


@kernel
def set_speeds(F: Floats, I: Ints, rows: Ints, rate: Floats, until: Floats, now: float) -> None:
    """Set new speeds from now on, and when rows are due with them; rows with an unchanged speed are left alone."""
    for k in range(rows.shape[0]):
        row = rows[k]
        F[Job.SPEED_UNTIL, row] = until[k]
        if rate[k] != F[Job.RATE, row]:
            settle(F, I, row, now)
            F[Job.RATE, row] = rate[k]
            set_due(F, row)


@kernel
def open_interval(I: Ints, D: Ints, row: int, now: float, log: LogColumns) -> None:
    """Log that the row holds its present devices from now on."""
    at, offset = log.written[LogSize.INTERVALS], log.written[LogSize.DEVICES]
    I[Job.INTERVAL, row] = at
    log.entry[Interval.ROW, at] = row
    log.entry[Interval.OPTION, at] = I[Job.OPTION, row]
    log.entry[Interval.REASON, at] = 0
    log.entry[Interval.OFFSET, at] = offset
    log.entry[Interval.NODE, at] = I[Job.NODE, row]
    log.time[Interval.START, at] = now
    log.time[Interval.END, at] = np.nan
    device = I[Job.HEAD, row]
    count = 0
    while device >= 0:
        log.device[offset + count] = device
        count += 1
        device = D[Device.NEXT, device]
    log.entry[Interval.COUNT, at] = count
    log.written[LogSize.INTERVALS], log.written[LogSize.DEVICES] = at + 1, offset + count


@kernel
def close_interval(I: Ints, row: int, now: float, reason: int, log: LogColumns) -> None:
    """Log that the row holds them until now."""
    at = I[Job.INTERVAL, row]
    if at >= 0:
        log.time[Interval.END, at] = now
        log.entry[Interval.REASON, at] = reason
        I[Job.INTERVAL, row] = -1


@kernel
def rate_of(t: Matrices, row: int) -> float:
    """Work per second of a chained gang with the option in use, by whether it sits on as few nodes as it can."""
    option = t.I[Job.OPTION, row]
    gpus = t.OI[Option.GPUS, option]
    together = True
    if t.I[Job.SPREAD, row] > 1:  # spans more nodes than it must?
        size = t.NI[Node.GPUS, t.D[Device.NODE, t.I[Job.HEAD, row]]]
        together = t.I[Job.SPREAD, row] <= (gpus + size - 1) // size
    rate: float = t.OF[Option.RATE, option] if together else t.OF[Option.RATE_SPREAD, option]
    return rate


@kernel
def price(cost: float, devices: int, amount: Floats) -> float:
    """What a change costs a gang of so many devices."""
    return cost + amount[Amount.DOUBLING] * np.log2(float(devices)) if cost > 0.0 and devices > 1 else cost


@kernel
def start(t: Matrices, row: int, now: float, rules: EngineRules, log: LogColumns) -> None:
    """The row has taken its devices: it begins to run."""
    F, I, amount = t.F, t.I, rules.amount
    rate = rate_of(t, row)
    waited = now - F[Job.SINCE, row]
    if waited > 0.0:
        F[Job.WAITED, row] += waited
    first = np.isnan(F[Job.FIRST_START, row])
    cost = price(amount[Amount.START] if first else amount[Amount.RESUME], I[Job.HELD, row], amount)
    if first:
        F[Job.FIRST_START, row] = now
        F[Job.MARK, row] = now + amount[Amount.CREDIT]
    else:
        I[Job.RESTARTS, row] += 1
    F[Job.LAST_START, row] = now
    F[Job.UNTIL, row] = np.inf
    I[Job.EPOCH, row] += 1
    I[Job.REASON, row] = 0
    F[Job.RATE, row] = rate
    I[Job.PHASE, row] = RUNNING
    F[Job.SINCE, row] = now + cost
    set_due(F, row)
    open_interval(I, t.D, row, now, log)


@kernel
def halt(F: Floats, I: Ints, row: int, now: float, reason: int, log: LogColumns) -> None:
    """The row stops on purpose: what it has done is saved. Its devices have been given back already."""
    I[Job.PREEMPTIONS, row] += 1
    I[Job.REASON, row] = reason
    settle(F, I, row, now)
    close_interval(I, row, now, reason, log)
    rest(F, I, row, now)


@kernel
def rest(F: Floats, I: Ints, row: int, now: float) -> None:
    """The row waits from now on, with all its work saved."""
    F[Job.SAFE, row] = F[Job.DONE, row]
    F[Job.RATE, row] = 0.0
    F[Job.SINCE, row] = now
    F[Job.UNTIL, row] = np.inf
    I[Job.PHASE, row] = PENDING
    I[Job.HELD, row] = 0
    I[Job.OPTION, row] = -1
    I[Job.SPREAD, row] = 0


@kernel
def complete(t: Matrices, row: int, at: float, log: LogColumns) -> None:
    """The row has finished at the instant `at`."""
    F, I = t.F, t.I
    settle(F, I, row, at)
    F[Job.DONE, row] = F[Job.WORK, row]
    F[Job.SAFE, row] = F[Job.WORK, row]
    F[Job.FINISH, row] = at
    F[Job.RATE, row] = 0.0
    give_back(t, row)
    close_interval(I, row, at, _FINISHED, log)
    I[Job.PHASE, row] = COMPLETED
    I[Job.HELD, row] = 0
    I[Job.OPTION, row] = -1


# Where a gang would go by the placement rule: one question, compiled.


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
