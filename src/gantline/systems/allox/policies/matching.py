"""AlloX's min-cost matching of jobs to machines and positions (AlloX, EuroSys 2020, section 4.1).

Counted from the end, a job in position k of a machine delays itself and the k - 1 jobs behind it, so a schedule's total
completion time is the sum over jobs of ``release + k * time``, and the best schedule is a least-cost bipartite matching
of jobs to (machine, position) slots.

The first part of a slot's cost does not know the job and the second not the machine, so two jobs in slots of one type and one k may
swap at no cost. All those slots are therefore one class with a convex price list, the sorted release times, and 2,000 machines of four
types with queues a dozen deep are some fifty nodes of a flow: jobs to classes, classes to the sink at the machines' release times.
Prices per class are the dual variables; a solve begins from any prices, places each job where it is cheapest under them and repairs
what does not balance along shortest paths, so that prices from the last decision leave little to do.

Times are whole microseconds (ticks), so that equal costs are equal whatever was computed before, and the same instance has the same
answer. Tie rule: jobs in order of arrival (then id) choose, one after the other, among the classes that some least-cost matching gives
them with the earlier choices kept: the position furthest from the end, then the type listed first. An earlier job is thus put further
forward. Since all numbers are whole, any optimal prices show the same set of optimal matchings: those that use nothing but tight arcs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gantline.core.arrays import Bools, Floats, Ints
from gantline.core.errors import UsageError
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel

FAR = np.int64(2**62)
FORBIDDEN = np.int64(-1)
TICKS = 1e6
LONGEST = 2.0**60

#: What makes the next solve quick: prices by class, how many positions of each type have one, and the type and position of each job.
State = dict[str, Ints]


@dataclass(frozen=True)
class Matching:
    """A schedule of jobs: per job its machine, its position from the end and its start in ticks."""

    machine: Ints
    position: Ints
    begin: Ints
    first: Bools  # heads its machine's list
    repairs: int  # paths that the solver had to find: how much changed


def to_ticks(times: Floats, release: Floats) -> tuple[Ints, Ints]:
    """Times by type and job (``times[j, t]`` in seconds; infinite or NaN where it cannot run) and release times, or a clear refusal."""
    known = np.isfinite(times)
    if (wrong := np.flatnonzero((known & (times <= 0.0)).any(axis=1))).size:
        raise UsageError(f"the job in row {wrong[0]} has a duration of zero or below", fix="durations must be positive")
    if (wrong := np.flatnonzero(~np.isfinite(release))).size:
        raise UsageError(f"machine {wrong[0]} has no release time", fix="leave out machines that are down")
    longest = np.max(times, where=known, initial=0.0) * (len(times) + 1) + np.max(np.abs(release), initial=0.0)
    if longest * TICKS > LONGEST:
        raise UsageError("times are too long to be counted in microseconds", fix="give times in seconds")
    ticks = np.maximum(np.rint(np.where(known, times, 0.0) * TICKS), 1.0).astype(np.int64)
    return np.ascontiguousarray(np.where(known, ticks, FORBIDDEN).T), np.rint(release * TICKS).astype(np.int64)


def match(ticks: Ints, kind: Ints, release: Ints, idle: Bools, names: Ints, state: State | None) -> tuple[Matching, State] | None:
    """Match jobs, in order of arrival, to machines; also return what makes the next solve quick. None: some job has nowhere to go.

    ``names`` are numbers that name the jobs from one solve to the next. The state is plain data and changes the effort, never the
    answer; it may come from another instance.
    """
    price, depth, place = recall(state, names, len(ticks))
    machine, begin, repairs = match_ticks(ticks, kind, release, idle, price, depth, place)
    if repairs < 0:
        return None
    found = Matching(machine, place % price.shape[1] + 1, begin, begin == release[machine], int(repairs))
    return found, remember(names, price, depth, place)


def recall(state: State | None, names: Ints, types: int) -> tuple[Ints, Ints, Ints]:
    """Prices, depths and guesses at the places of the named jobs (-1: none), with a position for each job."""
    levels = max(len(names), 1)
    price, depth, place = np.zeros((types, levels), np.int64), np.zeros(types, np.int64), np.full(len(names), -1, np.int64)
    if state is None or len(state["price"]) != types:
        return price, depth, place
    kept = min(levels, state["price"].shape[1])
    price[:, :kept] = state["price"][:, :kept]
    if len(jobs := state["jobs"]):
        at = np.minimum(np.searchsorted(jobs, names), len(jobs) - 1)
        known = (jobs[at] == names) & (state["position"][at] <= kept)
        place[known] = (state["type"][at] * levels + state["position"][at] - 1)[known]
    return price, np.minimum(state["depth"], kept), place


def remember(names: Ints, price: Ints, depth: Ints, place: Ints) -> State:
    """The state that recalls these."""
    order = np.argsort(names)
    order = order[place[order] >= 0]
    type_, position = np.divmod(place[order], price.shape[1])
    return {"price": price[:, : depth.max(initial=0)], "depth": depth, "jobs": names[order], "type": type_, "position": position + 1}


@compiled
def match_ticks(ticks: Ints, kind: Ints, release: Ints, idle: Bools, price: Ints, depth: Ints, place: Ints) -> tuple[Ints, Ints, int]:
    """Per job its machine and its start, and how many paths the solver had to find; -1: some job has nowhere to go.

    ``ticks[t, j]`` is how long job j takes on type t, ``release[i]`` when machine i of type ``kind[i]`` is free; of equal ones those that
    are idle are taken first. Prices, depths and places are what the solver begins with, and what it finds.
    """
    by_release = np.argsort(np.where(idle, 0, 1), kind="mergesort")
    by_release = by_release[np.argsort(release[by_release], kind="mergesort")]
    by_release = by_release[np.argsort(kind[by_release], kind="mergesort")]
    offset = np.zeros(ticks.shape[0] + 1, np.int64)
    for k in kind:
        offset[k + 1 :] += 1
    free_at = release[by_release]
    repairs = solve_slots(ticks, free_at, offset, price, depth, place)
    if repairs < 0:
        return by_release[:0], by_release[:0], -1
    settle(ticks, free_at, offset, price, depth, place)
    slot, begin = sequence(ticks, free_at, offset, price.shape[1], place)
    return by_release[slot], begin, repairs


class SlotProblem(NamedTuple):
    """What there is to place, where, and at which prices; see `solve_slots`."""

    times: Ints
    release: Ints
    offset: Ints
    price: Ints
    depth: Ints


class SlotPath(NamedTuple):
    """How far each class is, whether that is settled, and how it is reached: from which class, by moving which job."""

    distance: Ints
    seen: Bools
    from_node: Ints
    by_job: Ints


@compiled
def solve_slots(times: Ints, release: Ints, offset: Ints, price: Ints, depth: Ints, place: Ints) -> int:
    """Find a least-cost placement; return the number of repairs, or -1 if some job has nowhere to go.

    ``times[t, j]`` is job j's time on type t (FORBIDDEN if it cannot run there), ``release[offset[t]:offset[t + 1]]``
    the sorted release times of type t. Changed in place: ``price[t, k - 1]``, ``depth[t]`` (how many positions have
    prices) and ``place[j] = t * price.shape[1] + k - 1``, on entry a guess or -1.
    """
    types, levels = price.shape
    jobs = times.shape[1]
    sink = types * levels
    used, excess = np.zeros(sink, np.int64), np.zeros(sink + 1, np.int64)
    open_levels(release, offset, price, depth)
    for j in range(jobs):
        cheapest = cheapest_slot(times, price, depth, place[j], j)
        if cheapest < 0:
            return -1
        place[j] = cheapest
        excess[cheapest] += 1
    for t in range(types):
        for k in range(depth[t]):
            c = t * levels + k
            ready = release[offset[t] : offset[t + 1]]
            low, high = np.searchsorted(ready, price[t, k]), np.searchsorted(ready, price[t, k], side="right")
            used[c] = min(max(excess[c], low), high)
            excess[c] -= used[c]
            excess[sink] -= excess[c]
    for t in range(types):
        deepen(t, release, offset, price, depth, used)

    further, settled = np.zeros(sink + 1, np.int64), np.zeros(sink + 1, np.bool_)
    path = SlotPath(further, settled, np.full(sink + 1, -1, np.int64), np.full(sink + 1, -1, np.int64))
    from_node, by_job = path.from_node, path.by_job
    slots = SlotProblem(times, release, offset, price, depth)
    repairs = 0
    while True:
        target = search(slots, used, excess, place, path)
        if target < 0:
            return repairs
        reprice(price, depth, path.distance, path.seen, target)
        node = target
        while from_node[node] >= 0:
            previous, j = from_node[node], by_job[node]
            if j >= 0:
                place[j] = node
            elif node == sink:
                used[previous] += 1
            else:
                used[node] -= 1
            node = previous
        excess[node] -= 1
        excess[target] += 1
        for t in range(types):
            deepen(t, release, offset, price, depth, used)
        repairs += 1


@kernel
def open_levels(release: Ints, offset: Ints, price: Ints, depth: Ints) -> None:
    """Give every type positions down to the first that costs no more than its first machine: deeper ones are worse."""
    for t in range(price.shape[0]):
        if offset[t] == offset[t + 1]:
            depth[t] = 0
            continue
        earliest = release[offset[t]]
        k = 0
        while k < price.shape[1]:
            if k >= depth[t]:
                price[t, k] = earliest
            k += 1
            if price[t, k - 1] <= earliest:
                break
        depth[t] = k


@kernel
def deepen(t: int, release: Ints, offset: Ints, price: Ints, depth: Ints, used: Ints) -> None:
    """Open one more position below the last when that is in use."""
    levels = price.shape[1]
    while 0 < depth[t] < levels and used[t * levels + depth[t] - 1] > 0:
        price[t, depth[t]] = release[offset[t]]
        depth[t] += 1


@kernel
def cheapest_slot(times: Ints, price: Ints, depth: Ints, guess: int, j: int) -> int:
    """The class in which job j is cheapest: the guess if it is one of them, else the first."""
    levels = price.shape[1]
    best, cheapest = FAR, -1
    for t in range(price.shape[0]):
        if times[t, j] == FORBIDDEN:
            continue
        for k in range(depth[t]):
            cost = (k + 1) * times[t, j] + price[t, k]
            if cost < best or (cost == best and t * levels + k == guess):
                best, cheapest = cost, t * levels + k
    return cheapest


@kernel
def search(slots: SlotProblem, used: Ints, excess: Ints, place: Ints, path: SlotPath) -> int:
    """Shortest path (Dijkstra) from any node with too many to one with too few; -1 when all balance."""
    times, release, offset, price, depth = slots
    distance, seen, from_node, by_job = path
    types, levels = price.shape
    sink = types * levels
    seen[sink], from_node[sink], by_job[sink] = False, -1, -1
    distance[sink] = 0 if excess[sink] > 0 else FAR
    for t in range(types):
        for c in range(t * levels, t * levels + depth[t]):
            seen[c], from_node[c], by_job[c] = False, -1, -1
            distance[c] = 0 if excess[c] > 0 else FAR
    while True:
        node, nearest = -1, FAR
        for t in range(types):
            for c in range(t * levels, t * levels + depth[t]):
                if not seen[c] and distance[c] < nearest:
                    node, nearest = c, distance[c]
        if not seen[sink] and distance[sink] < nearest:
            node, nearest = sink, distance[sink]
        if node < 0 or excess[node] < 0:
            return node
        seen[node] = True
        if node == sink:
            for t in range(types):
                for k in range(depth[t]):
                    c = t * levels + k
                    if used[c] > 0:
                        d = nearest + price[t, k] - release[offset[t] + used[c] - 1]
                        if d < distance[c]:
                            distance[c], from_node[c], by_job[c] = d, sink, -1
            continue
        t, k = node // levels, node % levels
        if used[node] < offset[t + 1] - offset[t]:
            d = nearest + release[offset[t] + used[node]] - price[t, k]
            if d < distance[sink]:
                distance[sink], from_node[sink], by_job[sink] = d, node, -1
        for j in range(place.size):
            if place[j] != node:
                continue
            base = nearest - (k + 1) * times[t, j] - price[t, k]
            for to in range(types):
                time = times[to, j]
                if time == FORBIDDEN:
                    continue
                for level in range(depth[to]):
                    d = base + (level + 1) * time + price[to, level]
                    c = to * levels + level
                    if d < distance[c]:
                        distance[c], from_node[c], by_job[c] = d, node, j


@kernel
def reprice(price: Ints, depth: Ints, distance: Ints, seen: Bools, target: int) -> None:
    """Raise the prices of the nodes nearer than the target so that the path to it costs nothing; the sink's stays 0."""
    types, levels = price.shape
    sink = types * levels
    reach = distance[target]
    sink_rise = reach - distance[sink] if seen[sink] else np.int64(0)
    for t in range(types):
        for k in range(depth[t]):
            c = t * levels + k
            rise = reach - distance[c] if seen[c] else np.int64(0)
            price[t, k] += rise - sink_rise


class TightClasses(NamedTuple):
    """The classes in use and what makes an arc tight. The sink is a node behind the last class."""

    times: Ints
    kind: Ints  # type of each class
    level: Ints  # its position from the end, counted from zero
    price: Ints
    best: Ints  # what each job costs where it is cheapest


@compiled
def settle(times: Ints, release: Ints, offset: Ints, price: Ints, depth: Ints, place: Ints) -> None:
    """Turn an optimal ``place`` into the one that the tie rule names, in place; jobs are rows in order of arrival."""
    types, levels = price.shape
    jobs, sink = place.size, depth.sum()
    kind, level, listed = np.zeros(sink, np.int64), np.zeros(sink, np.int64), np.zeros(sink, np.int64)
    by_preference, at = np.zeros(sink, np.int64), np.zeros(jobs, np.int64)
    base = np.zeros(types, np.int64)
    c = 0
    for t in range(types):
        base[t] = c
        for k in range(depth[t]):
            kind[c], level[c], listed[c] = t, k, price[t, k]
            c += 1
    c = 0
    for k in range(levels - 1, -1, -1):
        for t in range(types):
            if k < depth[t]:
                by_preference[c] = base[t] + k
                c += 1
    best, used, choices = np.zeros(jobs, np.int64), np.zeros(sink, np.int64), np.zeros(jobs, np.int64)
    tight = TightClasses(times, kind, level, listed, best)
    moves = np.zeros((sink + 1, sink + 1), np.int32)  # jobs that could go from class to class at no cost and have not chosen yet
    for j in range(jobs):
        at[j] = base[place[j] // levels] + place[j] % levels
        best[j] = (level[at[j]] + 1) * times[kind[at[j]], j] + listed[at[j]]
        used[at[j]] += 1
        choices[j] = count_moves(tight, moves, j, at[j], 1)
    onward, queue = np.zeros(sink + 1, np.int64), np.zeros(sink + 1, np.int64)
    for j in range(jobs):
        if choices[j] == 0:
            continue
        here = at[j]
        count_moves(tight, moves, j, here, -1)
        find_ways(tight, moves, release, offset, used, here, onward, queue)
        for wanted in by_preference:
            if wanted == here:
                break
            if onward[wanted] >= 0 and is_tight(tight, j, wanted):
                shift(tight, moves, at, used, j, wanted, onward)
                at[j] = wanted
                break
    for j in range(jobs):
        place[j] = kind[at[j]] * levels + level[at[j]]


@kernel
def is_tight(tight: TightClasses, j: int, c: int) -> bool:
    """Whether job j is cheapest in the class."""
    time = tight.times[tight.kind[c], j]
    return bool(time != FORBIDDEN and (tight.level[c] + 1) * time + tight.price[c] == tight.best[j])


@kernel
def count_moves(tight: TightClasses, moves: Ints, j: int, here: int, sign: int) -> int:
    """Add or withdraw the moves that job j, now in class ``here``, could make at no cost; how many there are."""
    count = 0
    for c in range(tight.price.size):
        if c != here and is_tight(tight, j, c):
            moves[here, c] += sign
            count += 1
    return count


@kernel
def find_ways(tight: TightClasses, moves: Ints, release: Ints, offset: Ints, used: Ints, target: int, onward: Ints, queue: Ints) -> None:
    """Per node the next one on a way to the target along which a unit can go at no cost; -1: there is none."""
    sink, price = tight.price.size, tight.price
    for node in range(sink + 1):
        onward[node] = -1
    onward[target], queue[0] = target, target
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for other in range(sink + 1):
            if onward[other] >= 0:
                continue
            if node == sink:  # the class takes one more machine
                t = tight.kind[other]
                free = offset[t] + used[other] < offset[t + 1] and release[offset[t] + used[other]] == price[other]
            elif other == sink:  # the class gives its last machine up
                free = used[node] > 0 and release[offset[tight.kind[node]] + used[node] - 1] == price[node]
            else:
                free = moves[other, node] > 0
            if free:
                onward[other] = node
                queue[tail] = other
                tail += 1


@kernel
def shift(tight: TightClasses, moves: Ints, at: Ints, used: Ints, chooser: int, source: int, onward: Ints) -> None:
    """Carry one unit along the way from the source: each class hands on a job that has not chosen yet, or a machine of its own."""
    sink, node = tight.price.size, source
    while onward[node] != node:
        following = onward[node]
        if following == sink:
            used[node] += 1
        elif node == sink:
            used[following] -= 1
        else:
            j = chooser + 1
            while at[j] != node or not is_tight(tight, j, following):
                j += 1
            count_moves(tight, moves, j, node, -1)
            at[j] = following
            count_moves(tight, moves, j, following, 1)
        node = following


@compiled
def sequence(times: Ints, release: Ints, offset: Ints, levels: int, place: Ints) -> tuple[Ints, Ints]:
    """Give each job a machine (index into ``release``) and a starting time.

    Jobs of one class may swap machines at no cost, so within a class the earliest arrival gets the machine that is
    ready first (equal ones: in the order of ``release``). Positions are filled from the front, from the highest k.
    """
    jobs = place.size
    machine, begin = np.full(jobs, -1, np.int64), np.zeros(jobs, np.int64)
    ready = release.copy()
    count = np.zeros((offset.size - 1) * levels + 1, np.int64)
    for j in range(jobs):
        count[place[j] + 1] += 1
    for k in range(1, count.size):
        count[k] += count[k - 1]
    slot, first = count, count.copy()
    members = np.zeros(jobs, np.int64)
    for j in range(jobs):
        members[slot[place[j]]] = j
        slot[place[j]] += 1
    for t in range(offset.size - 1):
        for k in range(levels - 1, -1, -1):
            c = t * levels + k
            size = first[c + 1] - first[c]
            if size == 0:
                continue
            by_ready = np.argsort(ready[offset[t] : offset[t] + size], kind="mergesort")
            for i in range(size):
                j, m = members[first[c] + i], offset[t] + by_ready[i]
                machine[j], begin[j] = m, ready[m]
                ready[m] += times[t, j]
    return machine, begin
