"""Making room: taking devices from gangs on trial, giving them back, and finding the node that is cheapest to clear."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import DOWN, FREE, Device, Job, Node, Option, elapsed
from gantline.core.errors import RefusedError
from gantline.core.host_resources import asks_beside, lacks_beside, take_beside
from gantline.core.jit import kernel
from gantline.core.phases import RUNNING, STARTING
from gantline.core.policy import Policy
from gantline.core.tables import Matrices
from gantline.engine.gang import find_place, give_back
from gantline.engine.lists import Lists, RowCount
from gantline.engine.ranks import before
from gantline.engine.runs import safe_work
from gantline.engine.settings import Amount, EngineRules, Switch
from gantline.engine.state import State
from gantline.engine.walk.notes import ORDER, Notes, Walk
from gantline.policies.placement.fit import largest_node


@kernel
def movable(F: Floats, I: Ints, row: int, now: float, min_run: float) -> bool:
    """Whether a gang may be stopped: it runs or starts, is not locked, and has had its minimum run time."""
    phase = I[Job.PHASE, row]
    if (phase != RUNNING and phase != STARTING) or I[Job.LOCKED, row] != 0:
        return False
    return min_run <= 0.0 or now >= F[Job.LAST_START, row] + min_run


@kernel
def restore(t: Matrices, notes: Notes, v: int) -> bool:
    """Give victim `v` its own devices back, if no other gang has taken them; none can on a draining node."""
    I, NF, D = t.I, t.NF, t.D
    row, option, node, first = notes.victim[v], notes.option[v], notes.node[v], notes.offset[v]
    count, saved = I[Job.HELD, row], notes.saved
    beside = asks_beside(t.OF, option)
    if count == 0:  # a grant of CPUs only
        if lacks_beside(t.OF, NF, option, node, 1):
            return False
        take_beside(t.OF, NF, option, node, 1)
        I[Job.NODE, row] = node
        I[Job.OPTION, row] = option
        return True
    for k in range(first, first + count):
        at, here = D[Device.NODE, saved[k]], 1
        if D[Device.HOLDER, saved[k]] != FREE and D[Device.HOLDER, saved[k]] != DOWN:
            return False
        if beside:  # what all of its devices on that node need
            for j in range(first, first + count):
                here += int(j != k and D[Device.NODE, saved[j]] == at)
            if lacks_beside(t.OF, NF, option, at, here):
                return False
    last = -1
    for k in range(first, first + count):
        device = saved[k]
        at = D[Device.NODE, device]
        t.NI[Node.FREE, at] -= int(D[Device.HOLDER, device] == FREE)
        D[Device.HOLDER, device] = row
        D[Device.NEXT, device] = -1
        take_beside(t.OF, NF, option, at, 1)
        if last < 0:
            I[Job.HEAD, row] = device
        else:
            D[Device.NEXT, last] = device
        last = device
    I[Job.OPTION, row] = option
    return True


@kernel
def evict(t: Matrices, notes: Notes, row: int) -> None:
    """Take the devices of a running gang away on trial, remembering which they were."""
    I, number = t.I, notes.number
    kind, v, saved = t.OI[Option.TYPE, I[Job.OPTION, row]], number[Walk.VICTIMS], number[Walk.SAVED]
    I[Job.FLAGS, row] = v + 1
    notes.victim[v] = row
    notes.offset[v] = saved
    notes.option[v] = I[Job.OPTION, row]
    notes.node[v] = I[Job.NODE, row]
    device = I[Job.HEAD, row]
    while device >= 0:
        notes.saved[saved] = device
        saved += 1
        if number[Walk.BY_NODE] == 1:
            t.NI[Node.RECLAIM, t.D[Device.NODE, device]] -= 1 - t.D[Device.CLOSED, device]
        device = t.D[Device.NEXT, device]
    give_back(t, row)
    notes.free[kind] += I[Job.HELD, row]
    notes.reclaim[kind] -= I[Job.HELD, row]
    number[Walk.VICTIMS] = v + 1
    number[Walk.SAVED] = saved
    number[Walk.UNDECIDED] += 1


@kernel
def undo(t: Matrices, notes: Notes) -> None:
    """Take back the last eviction."""
    I, number = t.I, notes.number
    v = number[Walk.VICTIMS] - 1
    row = notes.victim[v]
    restore(t, notes, v)
    I[Job.FLAGS, row] = 0
    kind = t.OI[Option.TYPE, I[Job.OPTION, row]]
    notes.free[kind] -= I[Job.HELD, row]
    notes.reclaim[kind] += I[Job.HELD, row]
    device = I[Job.HEAD, row]
    while device >= 0:
        t.NI[Node.RECLAIM, t.D[Device.NODE, device]] += 1 - t.D[Device.CLOSED, device]
        device = t.D[Device.NEXT, device]
    number[Walk.VICTIMS] = v
    number[Walk.SAVED] = notes.offset[v]
    number[Walk.UNDECIDED] -= 1


@kernel
def count_reclaim(t: Matrices, lists: Lists, notes: Notes, now: float, min_run: float) -> None:
    """Devices per node that gangs still to come would give up; maintained from now on."""
    for node in range(t.NI.shape[1]):
        t.NI[Node.RECLAIM, node] = 0
    for k in range(notes.number[Walk.AT_RUNNING], lists.number[RowCount.RUNNING]):
        row = lists.running[k]
        if t.I[Job.FLAGS, row] == 0 and movable(t.F, t.I, row, now, min_run):
            device = t.I[Job.HEAD, row]
            while device >= 0:
                t.NI[Node.RECLAIM, t.D[Device.NODE, device]] += 1 - t.D[Device.CLOSED, device]
                device = t.D[Device.NEXT, device]
    notes.number[Walk.BY_NODE] = 1


@kernel
def _first_candidate(rules: EngineRules, notes: Notes) -> int:
    """Where the search for victims ends: ranks above were walked already. Those that lose most may be of any rank."""
    return 0 if rules.switch[Switch.LEAST_LOST] == 1 else int(notes.number[Walk.AT_RUNNING])


@kernel
def _candidate(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, k: int, row: int) -> int:
    """The gang at place `k` of the search, which goes from the last to the first; -1: it does not give way to the row."""
    if rules.switch[Switch.LEAST_LOST] == 0:
        return int(lists.running[k])
    other = notes.order[k]
    return int(other) if before(t.F, row, other) and not was_spared(t.F, t.I, row, other) else -1


@kernel
def was_spared(F: Floats, I: Ints, row: int, other: int) -> bool:
    """Whether the row was stopped because the other one would have lost more: then it does not stop it in turn."""
    if I[Job.FLAGS, row] != 0:  # in this very walk
        return True
    return bool(I[Job.PREEMPTIONS, row] > 0 and F[Job.LAST_START, other] < F[Job.SINCE, row])


@kernel
def node_to_clear(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, row: int, kind: int, need: int, now: float) -> int:
    """The node on which stopping the lowest-ranked gangs first (or those that lose least) makes room for `need` devices; -1: none.

    It is the node that stopping gangs from the back, one after the other, would clear first; finding it before any gang is stopped
    spares all gangs with devices that would not have helped.
    """
    min_run = rules.amount[Amount.MIN_RUN]
    I, NI, D, gain = t.I, t.NI, t.D, notes.gain
    for node in range(NI.shape[1]):
        gain[node] = 0
    for k in range(lists.number[RowCount.RUNNING] - 1, _first_candidate(rules, notes) - 1, -1):
        other = _candidate(t, lists, rules, notes, k, row)
        if other < 0 or I[Job.FLAGS, other] != 0 or not movable(t.F, I, other, now, min_run):
            continue
        device = I[Job.HEAD, other]
        alone = I[Job.SPREAD, other] == 1 and NI[Node.CLOSED, D[Device.NODE, device]] == 0  # no need to go through its devices
        while device >= 0:
            node = D[Device.NODE, device]
            gain[node] += I[Job.HELD, other] if alone else 1 - D[Device.CLOSED, device]
            if NI[Node.FREE, node] + gain[node] >= need and NI[Node.TYPE, node] == kind and NI[Node.UP, node] == 1:
                return int(node)
            device = -1 if alone else D[Device.NEXT, device]
    return -1


@kernel
def sits_on(I: Ints, D: Ints, row: int, node: int) -> bool:
    """Whether a gang has devices on the node."""
    device = I[Job.HEAD, row]
    while device >= 0:
        if D[Device.NODE, device] == node:
            return True
        device = D[Device.NEXT, device] if I[Job.SPREAD, row] > 1 else -1
    return False


@kernel
def leaves_some(t: Matrices, row: int) -> bool:
    """Whether others may have a device that the gang would leave, or its CPUs: not if all are cordoned, or their nodes drain."""
    option, device = t.I[Job.OPTION, row], t.I[Job.HEAD, row]
    beside = asks_beside(t.OF, option)
    while device >= 0:
        if t.NI[Node.UP, t.D[Device.NODE, device]] == 1 and (beside or t.D[Device.CLOSED, device] == 0):
            return True
        device = t.D[Device.NEXT, device]
    return False


@kernel
def make_room(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, row: int, option: int, plain: bool, now: float) -> int:
    """Stop lower-ranked gangs, lowest first, until the gang fits; if it never does, none stops. Returns how many nodes it gets; 0: none."""
    number, kind, need = notes.number, t.OI[Option.TYPE, option], t.OI[Option.GPUS, option]
    keep, min_run = rules.switch[Switch.KEEP_EVICTIONS] == 1, rules.amount[Amount.MIN_RUN]
    if notes.reclaim[kind] <= 0 and not keep and need > 0:
        return 0
    target = -1
    if plain and not keep and rules.switch[Switch.ONE_NODE] == 1 and need <= largest_node(t.NI, kind):
        target = node_to_clear(t, lists, rules, notes, row, kind, need, now)
        if target < 0:
            return 0
    elif not keep and need > 0:
        if number[Walk.BY_NODE] == 0:
            count_reclaim(t, lists, notes, now, min_run)
        if find_place(t, rules, row, option, True, notes.nodes, notes.counts) == 0:
            return 0
    if number[Walk.TYPES] > 1 or target >= 0 or number[Walk.CLEARED] == 1 or rules.switch[Switch.LEAST_LOST] == 1:
        number[Walk.BACK] = lists.number[RowCount.RUNNING] - 1  # some were passed over before and are candidates again
    number[Walk.CLEARED] = int(target >= 0)
    back, victims = number[Walk.BACK], number[Walk.VICTIMS]
    used = _stop_until_it_fits(t, lists, rules, notes, row, option, target, now)
    if used > 0 and number[Walk.VICTIMS] > victims + 1 and rules.switch[Switch.LEAST_LOST] == 1 and not keep:
        used = spare_needless(t, rules, notes, row, option, victims)
    if used > 0 or keep:
        notes.tried[kind] = notes.tried[kind + number[Walk.TYPES]] = 1 << 60  # more is free than before
    else:
        while number[Walk.VICTIMS] > victims:
            undo(t, notes)
        number[Walk.BACK] = back
    return used


@kernel
def _stop_until_it_fits(t: Matrices, lists: Lists, rules: EngineRules, notes: Notes, row: int, option: int, target: int, now: float) -> int:
    """Take away devices, from the last candidate on, until the gang has a place; on one node, where a target is given."""
    I, number, kind, need = t.I, notes.number, t.OI[Option.TYPE, option], t.OI[Option.GPUS, option]
    keep, min_run = rules.switch[Switch.KEEP_EVICTIONS] == 1, rules.amount[Amount.MIN_RUN]
    used = 0
    while used == 0 and number[Walk.BACK] >= _first_candidate(rules, notes):
        other = _candidate(t, lists, rules, notes, number[Walk.BACK], row)
        number[Walk.BACK] -= 1
        if other < 0:
            continue
        if I[Job.FLAGS, other] != 0 or not movable(t.F, I, other, now, min_run):
            continue
        if not keep and t.OI[Option.TYPE, I[Job.OPTION, other]] != kind:
            continue  # its devices cannot help
        if not keep and need > 0 and not leaves_some(t, other):
            continue
        if target >= 0 and not sits_on(I, t.D, other, target):
            continue
        evict(t, notes, other)
        if need <= notes.free[kind] and (target < 0 or t.NI[Node.FREE, target] >= need):
            used = find_place(t, rules, row, option, False, notes.nodes, notes.counts)
    return used


@kernel
def spare_needless(t: Matrices, rules: EngineRules, notes: Notes, row: int, option: int, first: int) -> int:
    """Let those of the victims, from the `first` on, run on whose devices the gang does not need beside the others'; as `make_room`.

    They were stopped by what they lose, and a larger one behind them may make them needless. Those that lose most are spared first; the
    last one is needed, because without it there was no room.
    """
    I, last = t.I, notes.number[Walk.VICTIMS]
    for v in range(last - 2, first - 1, -1):
        other = notes.victim[v]
        if restore(t, notes, v):
            if find_place(t, rules, row, option, False, notes.nodes, notes.counts) > 0:
                I[Job.FLAGS, other] = -I[Job.FLAGS, other]
            else:
                give_back(t, other)
    for v in range(last - 1, first - 1, -1):  # all are taken back, and those that are needed stopped again
        other = notes.victim[v]
        if I[Job.FLAGS, other] < 0:
            give_back(t, other)
    for v in range(last - 1, first - 1, -1):
        other = notes.victim[v]
        spared = I[Job.FLAGS, other] < 0
        undo(t, notes)
        notes.victim[v] = -1 if spared else other
    for v in range(first, last):
        if notes.victim[v] >= 0:
            evict(t, notes, notes.victim[v])
    return find_place(t, rules, row, option, False, notes.nodes, notes.counts)


# Victims by what they lose: of all gangs that rank lower, those are stopped first that have least to do again.
#
# A gang that is stopped loses what it has done since its last save, on all of its devices; one that loses nothing
# comes first. Among equals the lower rank gives way, as it does without this rule. Nobody is stopped in vain: a gang
# chosen early runs on where those chosen after it make room by themselves. A victim may rank above gangs that were
# spared: it does not stop these in turn, or nothing would have been won; it waits for free devices, or stops what has
# started since. Plans that assign devices name what runs, and leave no choice.


def lost_by(state: State, row: int) -> float:
    """Device-seconds of work that a gang would have to do again if it were stopped without a save."""
    F, I = state.tables.F, state.tables.I
    rate = float(F[Job.RATE, row])
    if rate <= 0.0:
        return 0.0
    done = float(F[Job.DONE, row]) + rate * elapsed(F, I, row, state.now)
    return max(0.0, done - safe_work(state, row)) / rate * int(I[Job.HELD, row])


def order_victims(state: State, key: Floats, rows: Ints) -> None:
    """Say in which order the walk that follows looks for victims; `key` ranks the `rows` of the plan."""
    running = state.running_rows
    ranks = np.full(state.tables.F.shape[1], np.inf)
    ranks[rows] = key
    lost = np.array([lost_by(state, row) for row in running.tolist()])
    state.scratch[ORDER, : len(running)] = running[np.lexsort((running, ranks[running], -lost))]


def check_choice(state: State, policy: Policy) -> None:
    """Refuse the rule where nothing could follow it."""
    if not state.SI[Switch.LEAST_LOST]:
        return
    name = policy.name or type(policy).__name__
    if not policy.ranks:
        text = f"policy '{name}' assigns devices: its plans name what is stopped, and leave no choice"
        raise RefusedError(text, where="--victims least-lost", fix="use --victims order, or a policy that ranks jobs")
    if state.regime.keep_evictions or state.regime.strict:
        text = f"regime '{state.regime.name}' says itself what is stopped"
        raise RefusedError(text, where="--victims least-lost", fix="use --victims order, or the default regime")
