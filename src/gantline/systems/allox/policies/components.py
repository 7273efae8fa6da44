"""Strongly connected components of a small directed graph (Tarjan, 1972), without recursion."""

from __future__ import annotations

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.jit import compiled_from_zero as compiled


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
