"""On which nodes: Sia's two placements (SOSP 2023, section 3.5, and its artifact).

*sticky*, used on live clusters: a job that keeps its configuration stays; whole-node jobs take free nodes from the highest number down and,
where there are too few, the node with most free GPUs, whose small jobs move; small jobs go to the fullest node that has room, largest
first, and where none has, smaller ones move out of the node where least has to move. *fast*, used in the artifact's simulations: largest
first, node after node, leftovers anywhere. Neither splits what fits a node while sizes divide each other, as Sia's configurations do;
other sizes (rigid jobs) may be split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gantline.policies.node_classes import NodeClass

Parts = tuple[tuple[int, int], ...]  # (node of the class, GPUs)


class PlacementRequest(NamedTuple):
    """A job that is to have GPUs of a class."""

    job: int
    gpus: int


def shape_of(parts: Parts) -> tuple[int, ...]:
    """GPUs on each of its nodes."""
    return tuple(gpus for _, gpus in parts)


def place_fast(nodes: NodeClass, requests: Iterable[PlacementRequest]) -> dict[int, Parts]:
    """Place all jobs anew, by a pointer that moves over the nodes."""
    free = [nodes.size] * len(nodes.nodes)
    found, pointer = {}, 0
    for request in sorted(requests, key=lambda w: -w.gpus):
        parts, need = [], request.gpus
        while need and pointer < len(free):
            take = min(need, nodes.size)
            if free[pointer] >= take:
                parts.append((pointer, take))
                free[pointer] -= take
                need -= take
            else:
                pointer += 1
        found[request.job] = (*parts, *_leftovers(free, need))
    return found


def place_sticky(nodes: NodeClass, requests: Iterable[PlacementRequest], before: Mapping[int, Parts]) -> dict[int, Parts]:
    """A job that had as many GPUs here stays where it was, if it can."""
    free = [nodes.size] * len(nodes.nodes)
    wanted = list(requests)
    found: dict[int, Parts] = {}
    for request in wanted:
        parts = before.get(request.job, ())
        if sum(shape_of(parts)) == request.gpus and all(free[node] >= gpus for node, gpus in parts):
            found[request.job] = parts
            _take(free, parts)
    size = {request.job: request.gpus for request in wanted}
    queue = sorted((request for request in wanted if request.job not in found), key=lambda w: -w.gpus)
    while queue:
        request = queue.pop(0)
        whole, rest = divmod(request.gpus, nodes.size)
        chosen = [(node, nodes.size) for node in reversed(range(len(free))) if free[node] == nodes.size][:whole]
        while len(chosen) < whole:  # a node whose jobs can all move
            moving = _emptied(free, found, {node for node, _ in chosen}, nodes.size)
            if moving is None:
                return place_fast(nodes, wanted)
            chosen.append((moving, nodes.size))
            queue += _evict(free, found, size, moving)
        _take(free, chosen)
        if rest:
            node = _fullest(free, rest)
            if node < 0 and not whole:
                node, leaving = _cheapest(free, found, rest)
                for job in leaving:
                    _give(free, found.pop(job))
                    queue.append(PlacementRequest(job, size[job]))
            if node < 0:
                chosen += _leftovers(free, rest)
                if sum(gpus for _, gpus in chosen) < request.gpus:
                    return place_fast(nodes, wanted)
            else:
                chosen.append((node, rest))
                free[node] -= rest
        found[request.job] = tuple(chosen)
        queue.sort(key=lambda w: -w.gpus)
    return found


def _take(free: list[int], parts: Iterable[tuple[int, int]]) -> None:
    for node, gpus in parts:
        free[node] -= gpus


def _give(free: list[int], parts: Iterable[tuple[int, int]]) -> None:
    for node, gpus in parts:
        free[node] += gpus


def _leftovers(free: list[int], need: int) -> list[tuple[int, int]]:
    """The first node that has room for all of it, else what is free, node by node."""
    parts: list[tuple[int, int]] = []
    for node in [node for node, left in enumerate(free) if left >= need][:1] or range(len(free)):
        take = min(need, free[node])
        if take:
            parts.append((node, take))
            free[node] -= take
            need -= take
    return parts


def _fullest(free: list[int], need: int) -> int:
    """The node with least room that still has enough; -1: none."""
    return min((node for node, left in enumerate(free) if left >= need), key=lambda node: (free[node], node), default=-1)


def _emptied(free: list[int], found: Mapping[int, Parts], taken: set[int], size: int) -> int | None:
    """The node with most free GPUs on which only jobs of one node are."""
    spread = {node for parts in found.values() if len(parts) > 1 for node, _ in parts}
    whole = {parts[0][0] for parts in found.values() if len(parts) == 1 and parts[0][1] == size}
    open_ = [node for node in range(len(free)) if node not in taken | spread | whole]
    return max(open_, key=lambda node: (free[node], node), default=None)


def _evict(free: list[int], found: dict[int, Parts], size: Mapping[int, int], node: int) -> list[PlacementRequest]:
    """Remove the jobs of a node from it."""
    leaving = [job for job, parts in found.items() if parts[0][0] == node]
    for job in leaving:
        _give(free, found.pop(job))
    return [PlacementRequest(job, size[job]) for job in leaving]


def _cheapest(free: list[int], found: Mapping[int, Parts], need: int) -> tuple[int, list[int]]:
    """The node that has room once smaller jobs leave it, smallest first, and the jobs that leave; -1 where there is none."""
    best: tuple[int, int, list[int]] | None = None
    for node, left in enumerate(free):
        here = sorted((parts[0][1], job) for job, parts in found.items() if len(parts) == 1 and parts[0][0] == node)
        leaving: list[int] = []
        moved = 0
        for gpus, job in here:
            if left + moved >= need or gpus >= need:
                break
            leaving.append(job)
            moved += gpus
        if left + moved >= need and (best is None or moved < best[0]):
            best = moved, node, leaving
    return (best[1], best[2]) if best else (-1, [])
