"""Servers whose links are known by name: two generations of DGX-1, a node of Summit, a torus and a cube mesh of 16 (MAPA, SC 2021)."""

from __future__ import annotations

from functools import cache

from gantline.core.errors import NotFoundError, near
from gantline.core.topology import DOUBLE, SINGLE, GpuLink, LinkGraph

#: name -> GPUs, how many share a root of the bus, NVLinks by class and GB/s; the bus connects all other pairs
_SERVERS: dict[str, tuple[int, int, dict[tuple[int, float], str]]] = {
    "dgx-v": (
        8,
        4,
        {
            (SINGLE, 25.0): "1-2 1-3 2-4 3-7 4-8 5-6 5-7 6-8",
            (DOUBLE, 50.0): "1-4 1-5 2-3 2-6 3-4 5-8 6-7 7-8",
        },
    ),
    "dgx-p": (
        8,
        4,
        {
            (SINGLE, 20.0): "1-2 1-3 1-4 1-5 2-3 2-4 2-6 3-4 3-7 4-8 5-6 5-7 5-8 6-7 6-8 7-8",
        },
    ),
    "summit": (
        6,
        3,
        {
            (DOUBLE, 50.0): "1-2 1-3 2-3 4-5 4-6 5-6",
        },
    ),
    "torus-2d": (
        16,
        4,
        {
            (DOUBLE, 50.0): "1-2 1-13 2-3 3-4 4-16 5-6 6-7 7-8 9-10 10-11 11-12 13-14 14-15 15-16",
            (SINGLE, 25.0): "1-4 2-6 2-14 3-7 3-15 4-8 5-8 5-9 6-10 7-11 8-12 9-12 9-13 10-14 11-15 12-16 13-16",
        },
    ),
    "cubeMesh-16": (
        16,
        4,
        {
            (SINGLE, 25.0): "1-2 1-3 2-4 3-7 3-10 5-7 5-8 6-7 6-8 7-14 9-10 9-12 10-12 11-15 13-15 14-15 14-16",
            (DOUBLE, 50.0): "1-4 2-3 5-6 5-16 7-8 8-13 9-11 10-11 13-14 13-16 15-16",
            (DOUBLE, 25.0): "1-12 2-6 4-9 10-14",
        },
    ),
}


@cache
def find_topology(name: str) -> LinkGraph:
    """The link graph of that name; GPUs are numbered from 1."""
    if name not in _SERVERS:
        raise NotFoundError(f"no topology '{name}'", where="--topology", fix=f"{near(name, _SERVERS)}; or FILE.csv with links")
    gpus, group, links = _SERVERS[name]
    listed = [(pair.partition("-"), gbps, kind) for (kind, gbps), pairs in links.items() for pair in pairs.split()]
    edges = [GpuLink(a, b, gbps, kind) for (a, _, b), gbps, kind in listed]
    return LinkGraph.of([str(number + 1) for number in range(gpus)], edges, "topology", group).with_bus()
