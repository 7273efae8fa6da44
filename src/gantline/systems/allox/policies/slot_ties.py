"""Among equally good matchings, the one that is a function of the instance and not of the prices it began with.

Tie rule: jobs in order of arrival (then id) choose, one after the other, among the classes that some least-cost
matching gives them with the earlier choices kept: the position furthest from the end, then the type listed first. An
earlier job is thus put further forward. Since all numbers are whole, any optimal prices show the same set of optimal
matchings: those that use nothing but tight arcs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gantline.core.arrays import Ints
from gantline.core.jit import compiled_from_zero as compiled
from gantline.core.jit import kernel_from_zero as kernel
from gantline.systems.allox.policies.slot_flow import FAR, FORBIDDEN

Counts = npt.NDArray[np.int32]


@compiled
def settle(times: Ints, release: Ints, offset: Ints, price: Ints, depth: Ints, place: Ints) -> None:
    """Turn an optimal ``place`` into the canonical one, in place; jobs are rows in order of arrival."""
    types, levels = price.shape
    jobs = times.shape[1]
    choices, start = tight_classes(times, price, depth)
    if choices.size == jobs:
        return
    base, classes = np.zeros(types + 1, np.int64), 0
    for t in range(types):
        classes += depth[t]
        base[t + 1] = classes
    listed = np.zeros(classes, np.int64)
    for t in range(types):
        listed[base[t] : base[t + 1]] = price[t, : depth[t]]
    at, used = np.zeros(jobs, np.int64), np.zeros(listed.size, np.int64)
    for j in range(jobs):
        at[j] = base[place[j] // levels] + place[j] % levels
        used[at[j]] += 1
    last, following = marginal_prices(release, offset, base, used)
    first, heads = free_arcs(choices, start, at, listed, last, following)
    component = strong_components(first, heads)
    begins, by_component = members(component)
    shared, most = np.zeros(begins.size - 1, np.int64), 0
    for k in range(shared.size):
        shared[k] = begins[k + 1] - begins[k]
        most = max(most, shared[k])
    if most == 1:
        return
    moves = no_moves(listed.size + 1)
    for j in range(jobs):
        count_moves(moves, choices, start, j, at[j], 1)

    path = np.zeros(listed.size + 1, np.int64)
    ended = 0  # how far down the last job with a choice came on its list
    previous = -1
    for j in range(jobs):
        own = component[at[j]]
        if start[j + 1] - start[j] == 1 or shared[own] == 1:
            continue
        count_moves(moves, choices, start, j, at[j], -1)
        within = by_component[begins[own] : begins[own + 1]]
        # What an equal job could not get, with fewer choices made before it, this one cannot get either.
        s = start[j] + (ended if previous >= 0 and equal_jobs(times, j, previous) else 0)
        while choices[s] != at[j]:
            wanted = choices[s]
            if component[wanted] == own and find_path(moves, listed, last, following, within, wanted, at[j], path):
                shift(moves, choices, start, at, j, used, wanted, at[j], path)
                at[j] = wanted
                last, following = marginal_prices(release, offset, base, used)
                break
            s += 1
        ended, previous = s - start[j], j
    for j in range(jobs):
        t = np.searchsorted(base, at[j], side="right") - 1
        place[j] = t * levels + at[j] - base[t]


@compiled
def no_moves(classes: int) -> Counts:
    """A table of moves from class to class, all zero."""
    moves = np.empty((classes, classes), np.int32)
    for a in range(classes):
        for b in range(classes):
            moves[a, b] = 0
    return moves


@kernel
def equal_jobs(times: Ints, one: int, other: int) -> bool:
    """Whether two jobs take the same time everywhere."""
    differing = 0
    for t in range(times.shape[0]):
        differing += times[t, one] != times[t, other]
    return differing == 0


@compiled
def tight_classes(times: Ints, price: Ints, depth: Ints) -> tuple[Ints, Ints]:
    """Per job the classes in which it is cheapest under the prices, deepest position first, then by type."""
    types, jobs = price.shape[0], times.shape[1]
    deepest = 0
    base = np.zeros(types, np.int64)
    for t in range(types):
        deepest = max(deepest, depth[t])
        if t > 0:
            base[t] = base[t - 1] + depth[t - 1]
    start, found = np.zeros(jobs + 1, np.int64), np.zeros(4 * jobs + 4, np.int64)
    size = 0
    for j in range(jobs):
        best, equals, only = FAR, 0, -1
        for t in range(types):
            if times[t, j] == FORBIDDEN:
                continue
            for k in range(depth[t]):
                cost = (k + 1) * times[t, j] + price[t, k]
                if cost < best:
                    best, equals, only = cost, 1, base[t] + k
                elif cost == best:
                    equals += 1
        if size + equals > found.size:
            longer = np.zeros(found.size + size + equals, np.int64)
            for s in range(size):
                longer[s] = found[s]
            found = longer
        if equals == 1:
            found[size] = only
            size += 1
        else:
            for k in range(deepest - 1, -1, -1):
                for t in range(types):
                    if k < depth[t] and times[t, j] != FORBIDDEN and (k + 1) * times[t, j] + price[t, k] == best:
                        found[size] = base[t] + k
                        size += 1
        start[j + 1] = size
    return found[:size], start


@kernel
def count_moves(moves: Counts, choices: Ints, start: Ints, j: int, here: int, sign: int) -> None:
    """Add or withdraw the moves that job j, now in class ``here``, could make at no cost."""
    for s in range(start[j], start[j + 1]):
        if choices[s] != here:
            moves[here, choices[s]] += sign


@compiled
def marginal_prices(release: Ints, offset: Ints, base: Ints, used: Ints) -> tuple[Ints, Ints]:
    """Per class the release time of its last machine in use, and of the next one."""
    last, following = np.full(used.size, -FAR, np.int64), np.full(used.size, FAR, np.int64)
    for t in range(base.size - 1):
        for c in range(base[t], base[t + 1]):
            if used[c] > 0:
                last[c] = release[offset[t] + used[c] - 1]
            if offset[t] + used[c] < offset[t + 1]:
                following[c] = release[offset[t] + used[c]]
    return last, following


@compiled
def free_arcs(choices: Ints, start: Ints, at: Ints, listed: Ints, last: Ints, following: Ints) -> tuple[Ints, Ints]:
    """The arcs along which a unit can go at no cost, by node: ``heads[first[v]:first[v + 1]]``; the sink comes last."""
    sink = listed.size
    first = np.zeros(sink + 2, np.int64)
    for j in range(at.size):
        first[at[j] + 1] += start[j + 1] - start[j] - 1
    for c in range(sink):
        first[c + 1] += listed[c] == following[c]
        first[sink + 1] += listed[c] == last[c]
    for k in range(1, first.size):
        first[k] += first[k - 1]
    heads = np.zeros(first[sink + 1], np.int64)
    end = first.copy()
    for j in range(at.size):
        for s in range(start[j], start[j + 1]):
            if choices[s] != at[j]:
                heads[end[at[j]]] = choices[s]
                end[at[j]] += 1
    for c in range(sink):
        if listed[c] == following[c]:
            heads[end[c]] = sink
            end[c] += 1
        if listed[c] == last[c]:
            heads[end[sink]] = c
            end[sink] += 1
    return first, heads


@compiled
def find_path(moves: Counts, listed: Ints, last: Ints, following: Ints, within: Ints, source: int, target: int, path: Ints) -> bool:
    """Whether one unit can go from source to target at no cost; ``path[node]`` is then the node before."""
    sink = listed.size
    for node in within:
        path[node] = -1
    path[source] = source
    queue = np.zeros(within.size, np.int64)
    queue[0] = source
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for to in within:
            if path[to] >= 0:
                continue
            if node == sink:
                free = listed[to] == last[to]
            elif to == sink:
                free = listed[node] == following[node]
            else:
                free = moves[node, to] > 0
            if free:
                path[to] = node
                if to == target:
                    return True
                queue[tail] = to
                tail += 1
    return False


@kernel
def shift(moves: Counts, choices: Ints, start: Ints, at: Ints, chooser: int, used: Ints, source: int, target: int, path: Ints) -> None:
    """Carry one unit along the path: each class hands on a job that has not chosen yet, or a machine of its own."""
    sink = moves.shape[0] - 1
    node = target
    while node != source:
        previous = path[node]
        if node == sink:
            used[previous] += 1
        elif previous == sink:
            used[node] -= 1
        else:
            j = chooser + 1
            while at[j] != previous or not has(choices, start, j, node):
                j += 1
            count_moves(moves, choices, start, j, previous, -1)
            at[j] = node
            count_moves(moves, choices, start, j, node, 1)
        node = previous


@kernel
def has(choices: Ints, start: Ints, j: int, wanted: int) -> bool:
    """Whether the class is one in which job j is cheapest."""
    count = 0
    for s in range(start[j], start[j + 1]):
        count += choices[s] == wanted
    return count > 0


@compiled
def strong_components(first: Ints, heads: Ints) -> Ints:
    """Number the components; the arcs of node v go to ``heads[first[v]:first[v + 1]]``."""
    nodes = first.size - 1
    component, entered, lowest = np.full(nodes, -1, np.int64), np.full(nodes, -1, np.int64), np.zeros(nodes, np.int64)
    next_arc, trail, stack = first.copy(), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    trail_size = stack_size = clock = components = 0
    for root in range(nodes):
        if entered[root] >= 0:
            continue
        trail[0], trail_size = root, 1
        while trail_size > 0:
            node = trail[trail_size - 1]
            if entered[node] < 0:
                entered[node] = lowest[node] = clock
                clock += 1
                stack[stack_size] = node
                stack_size += 1
            if next_arc[node] < first[node + 1]:
                to = heads[next_arc[node]]
                next_arc[node] += 1
                if entered[to] < 0:
                    trail[trail_size] = to
                    trail_size += 1
                elif component[to] < 0:
                    lowest[node] = min(lowest[node], entered[to])
                continue
            trail_size -= 1
            if trail_size > 0:
                parent = trail[trail_size - 1]
                lowest[parent] = min(lowest[parent], lowest[node])
            if lowest[node] == entered[node]:
                while component[node] < 0:
                    stack_size -= 1
                    component[stack[stack_size]] = components
                components += 1
    return component


@compiled
def members(component: Ints) -> tuple[Ints, Ints]:
    """The nodes of every component, one after the other, and where each begins."""
    begins = np.zeros(component.size + 1, np.int64)
    for c in component:
        begins[c + 1] += 1
    for k in range(1, begins.size):
        begins[k] += begins[k - 1]
    end = begins.copy()
    nodes = np.zeros(component.size, np.int64)
    for node in range(component.size):
        nodes[end[component[node]]] = node
        end[component[node]] += 1
    return begins, nodes
